// SPDX-License-Identifier: Apache-2.0
// The slowest replica of a schedule, over its iterations.
#pragma once

#include "sim/graph/results.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

/// A rank that computes below full speed, on its GPUs [first_gpu, last_gpu].
struct SlowRank {
  std::size_t rank = 0;
  int replica = 0;
  int first_gpu = 0;
  int last_gpu = 0;
  double speed = 1.0;
};

/// Means are over iterations; on each one the replica counts that is last there.
struct StragglerSummary {
  int replica = 0;  ///< that is last most often (the lowest of several)
  std::size_t times_last = 0;
  double lag_ms = 0.0;                               ///< mean
  std::array<double, kLagCauses.size()> parts_ms{};  ///< mean, in the order of kLagCauses
};

/// Nothing where there are no iterations or no several replicas.
std::optional<StragglerSummary> straggler_summary(const ScheduleResult& schedule);

/// Ranks of the plan below full speed, by number.
std::vector<SlowRank> slow_ranks(const ScheduleResult& schedule);

/// Mean over the iterations: how much longer they take than the same order at full speed.
double slow_ranks_cost_ms(const ScheduleResult& schedule);

/// "Replica 3 of 8 ends last …", and what slow ranks cost; none where nothing would show at
/// `decimals`.
std::vector<std::string> straggler_sentences(const ScheduleResult& schedule, int decimals);

}  // namespace dipsim
