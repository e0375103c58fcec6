// SPDX-License-Identifier: Apache-2.0
// Random task graphs with a random valid schedule, for properties.
#pragma once

#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dipsim::test {

/// What a random case may contain. Times are small and often zero, so that ties are frequent.
struct CaseShape {
  std::size_t ranks = 3;
  std::size_t pairs = 10;
  bool shared_cells = false;  ///< ranks of several cells, and cells of several ranks
  bool speeds = false;
  bool epilogue = false;  ///< collectives and optimizer steps after the passes
  bool overlaps = false;
  bool offloads = false;     ///< pairs that may offload, between passes of their rank
  bool only_engine = false;  ///< gathers: not covered by the order evaluator
};

struct RandomCase {
  TaskGraph graph;
  Schedule schedule;          ///< agrees with `order`, so it can't deadlock
  std::vector<TaskId> order;  ///< of all tasks, each after what it needs
};

/// The graph is valid, and so is the schedule for it. Equal arguments give the same case.
RandomCase random_case(const CaseShape& shape, std::uint64_t seed);

}  // namespace dipsim::test
