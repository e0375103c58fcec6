// SPDX-License-Identifier: Apache-2.0
// The replicas of a task graph, addressed as schedules address them: by stage and microbatch.
#pragma once

#include "schedulers/static/pipeline_instance.hpp"
#include "schedulers/static/static_planner.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <vector>

namespace dipsim {

struct Replica {
  PipelineShape shape{.ranks = 0, .microbatches = 0, .chunks = 0};
  std::vector<RankId> ranks;  ///< by position
  std::vector<PairId> pairs;  ///< row stage × microbatches + microbatch
  /// Stages on each rank, in flow order: row rank × chunks + chunk.
  std::vector<int> stage_of;

  [[nodiscard]] int stage(int rank, int chunk) const;
  [[nodiscard]] PairId pair(int rank, const Step& step) const;
};

/// The pass of a pair with this op; F where the op is no pass.
TaskId pass_of(const Pair& pair, Op op);

/// Throws Input where the schedule does not allow that many chunks per rank.
void check_chunks(const StaticSchedule& schedule, int chunks);

/// By replica number. Linear in the size of the graph. Throws Input on a graph that this schedule
/// has not placed.
std::vector<Replica> find_replicas(const TaskGraph& graph, const StaticSchedule& schedule);

/// Each replica under these strategies, one per pair of the graph. A replica without microbatches
/// has no stages.
std::vector<PipelineInstance> pipeline_instances(const TaskGraph& graph,
                                                 std::span<const Replica> replicas,
                                                 std::span<const StrategyId> chosen);

/// For each instance the first one that equals it in everything but the names of its ranks: they
/// get equal orders.
std::vector<std::size_t> first_equal(std::span<const PipelineInstance> instances);

}  // namespace dipsim
