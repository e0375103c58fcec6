// SPDX-License-Identifier: Apache-2.0
// Everything that schedules with a fixed order have in common.
#pragma once

#include "schedulers/registry.hpp"
#include "sim/graph/planner.hpp"
#include "sim/graph/task_graph.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace dipsim {

/// What a fixed order depends on: one replica.
struct PipelineShape {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 1;  ///< per rank
};

/// One pass of a rank.
struct Step {
  Op op = Op::F;
  int chunk = 0;  ///< on this rank, in flow order
  int microbatch = 0;
};

/// A schedule whose order is a pure function of the shape. Every pipeline stage holds consecutive
/// layers of the concatenated modules; every microbatch flows through all stages as one work.
struct StaticSchedule {
  std::string_view name;
  bool split_backward = false;  ///< steps are F, I and W; else F and B
  int min_chunks = 1;           ///< per rank
  int max_chunks = 1;
  int default_chunks = 1;
  int (*rank_of)(const PipelineShape& shape, int stage) = nullptr;
  std::vector<Step> (*steps)(const PipelineShape& shape, int rank) = nullptr;
  /// Throws Input, naming rule, source and nearest legal value, on shapes without an order. Null:
  /// every shape has one.
  void (*check)(const PipelineShape& shape) = nullptr;
};

/// Stage s on rank s mod p: a microbatch goes round all ranks once per chunk.
int round_robin(const PipelineShape& shape, int stage);

/// Plans with this schedule; each replica is a copy of its own. `schedule` must outlive the
/// planner. Throws Input where the schedule does not allow options.chunks_per_rank.
std::unique_ptr<Planner> make_static_planner(const StaticSchedule& schedule,
                                             const PlannerOptions& options);

}  // namespace dipsim
