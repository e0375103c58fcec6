// SPDX-License-Identifier: Apache-2.0
// The true optimum of small cases, to judge planners by (docs/metrics.md, "Exact optimum of small
// cases").
#pragma once

#include "sim/core/units.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace dipsim {

/// What a search for the optimum may start from and spend. Equal inputs give equal results, except
/// where max_seconds ends the search.
struct ExactOptions {
  /// Only schedules with a smaller makespan are searched for.
  std::optional<Schedule> incumbent{};
  std::uint64_t max_nodes = 50'000'000;  ///< partial orders looked at
  /// Most partial orders of equal length that are kept at once: about 0.5 GB at the default.
  std::size_t max_width = std::size_t{1} << 17U;
  double max_seconds = 0.0;  ///< 0: no limit. Not reproducible: for tools.
};

struct ExactResult {
  bool proven = false;      ///< `makespan` is the least of all task orders
  Schedule schedule;        ///< the best one found; it fits in memory
  Duration makespan{0};     ///< its first start to last end of the passes
  Duration lower_bound{0};  ///< no task order that fits in memory takes less; proven: the makespan
  std::uint64_t nodes = 0;  ///< partial orders looked at
};

/// The order of the passes of all ranks with the least makespan, under the memory limit of every
/// rank and these strategies (one per pair), timed as OrderEvaluator does. The effort grows
/// exponentially with the number of microbatches, modules and ranks; see docs/metrics.md for what
/// is small.
///
/// Throws Infeasible when no order fits in memory, and Input
///  - on graphs that OrderEvaluator does not cover, ranks of several cells or that share a cell,
///    overlaps, offloading, and transient memory of tasks that are no passes;
///  - on passes that take no time but change the memory of a rank that may become full: what they
///    hold would depend on the instant, not on the order;
///  - on more than 64 passes that something waits for, or 64 W passes that nothing waits for;
///  - on choices that are not allowed, on an incumbent of another graph or other choices, or one
///    that does not fit in memory, and on limits out of range.
ExactResult solve_exact(const TaskGraph& graph, std::span<const StrategyId> chosen,
                        const ExactOptions& options = {});

}  // namespace dipsim
