// SPDX-License-Identifier: Apache-2.0
// One plan on one batch: the step that compare, plan and simulate share.
#pragma once

#include "experiment/schedule_choice.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/results.hpp"

#include <memory>
#include <vector>

namespace dipsim {

/// A schedule that is placed and ready to plan batches. Thread-safe.
class PlacedSchedule {
 public:
  PlacedSchedule(const ScheduleChoice& choice, const Lowering& lowering,
                 const Batch& representative);

  [[nodiscard]] const ScheduleChoice& choice() const { return choice_; }

  [[nodiscard]] const Placement& placement() const { return placement_; }

  /// Graph and schedule of one batch; a static schedule's pairs use `mode`.
  [[nodiscard]] PlanRun plan(const Batch& batch, RecomputeMode mode) const;

  /// Modes to try, lightest first: one for a schedule that chooses per pair or was told which.
  [[nodiscard]] std::vector<RecomputeMode> modes() const;

 private:
  ScheduleChoice choice_;
  const Lowering& lowering_;
  std::unique_ptr<Planner> planner_;
  Placement placement_;
};

/// The figures of a plan that has run. Throws Internal when it beats its lower bound (without
/// jitter).
IterationResult measure(const PlanRun& run, const EngineOptions& options);

}  // namespace dipsim
