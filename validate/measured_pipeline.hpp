// SPDX-License-Identifier: Apache-2.0
// A pipeline of equal stages whose pass times somebody measured one by one.
#pragma once

#include "models/synthetic.hpp"
#include "sim/graph/plan_file.hpp"

#include <span>
#include <string>
#include <vector>

namespace dipsim {

/// What a rank loses beside its passes, in seconds per pass: times of single passes do not hold it.
struct PassGaps {
  double exchange = 0.0;  ///< per F and per I or B: they wait for a neighbour and feed one
  double weight = 0.0;    ///< per W of its own
};

/// Planned once from the times of its passes, then run with any gaps.
class MeasuredPipeline {
 public:
  /// Throws as synthetic_plan() does.
  MeasuredPipeline(const SyntheticSpec& spec, const std::string& schedule);

  /// The longest time that a rank takes from the start of its first pass to the end of its last
  /// one, in seconds. Iterations follow each other so closely where no rank waits for all others
  /// between them (Zero Bubble, arXiv 2401.10241 §4); under 1F1B it is the makespan.
  [[nodiscard]] double longest_rank_seconds(const PassGaps& gaps = {}) const;

 private:
  PlanFile plan_;
};

/// A pipeline and how long an iteration of it took, without what follows the passes.
struct MeasuredIteration {
  const MeasuredPipeline* pipeline = nullptr;
  double seconds = 0.0;
};

/// The gaps, none below zero, that minimise the sum of squared relative errors of these
/// iterations: Gauss-Newton, as the engine is nearly linear in them. Deterministic.
PassGaps fit_gaps(std::span<const MeasuredIteration> iterations);

}  // namespace dipsim
