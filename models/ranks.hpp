// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a parallel plan stand in a cluster.
#pragma once

#include "models/model.hpp"
#include "models/placed_module.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/network_time.hpp"
#include "sim/graph/lowering.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim {

/// Throws Input, naming the nearest legal value, unless the plan fits the cluster, the GPUs of a
/// rank share nodes evenly or take whole ones, tp divides heads, FFN and hidden width of every
/// module, and ep divides tp·cp·dp and the experts of every module that has any.
void check_plan(const LmmModel& model, const Cluster& cluster, const ParallelPlan& plan);

/// Consecutive GPUs of some layers: pipeline position by position, at each the ranks of the
/// `members` side by side, each of tp·cp GPUs.
struct GpuBlock {
  int first = 0;
  int tp = 1;
  int cp = 1;
  int ep = 1;
  int pp = 1;
  int members = 1;  ///< ranks with equal weights

  [[nodiscard]] int rank_gpus() const { return tp * cp; }

  /// GPUs that hold the same part of the weights outside experts.
  [[nodiscard]] int weight_copies() const { return cp * members; }

  /// GPUs that hold the same experts.
  [[nodiscard]] int expert_copies() const { return tp * cp * members / ep; }

  [[nodiscard]] GpuId gpu(int position, int member, int inside) const {
    return GpuId((position * members + member) * rank_gpus() + inside + first);
  }
};

/// The one block of a plan without groups, for every module.
std::vector<GpuBlock> blocks_of(std::size_t modules, const ParallelPlan& plan);

/// A block per module, those with wide tensor parallelism first, so that with degrees that divide
/// one another and the GPUs of a node no tensor-parallel group crosses nodes.
std::vector<GpuBlock> blocks_of(std::span<const ModuleGroup> groups, const ParallelPlan& plan);

/// Degrees from 1 to the GPUs of a node or of a replica that are legal for every module, each a
/// multiple of the one before.
std::vector<int> legal_group_degrees(const LmmModel& model, const Cluster& cluster,
                                     const ParallelPlan& plan);

/// Throws Input unless there is a group per module, of legal degrees, all together have no more
/// GPUs than a replica of the plan, and the plan has neither context nor expert parallelism: groups
/// have none.
void check_groups(std::span<const ModuleGroup> groups, const LmmModel& model,
                  const Cluster& cluster, const ParallelPlan& plan);

/// Ranks of groups: replica by replica, inside module by module, copy by copy, by position.
Problem make_problem(const std::vector<PlacedModule>& modules, const LmmModel& model,
                     const Cluster& cluster, const ParallelPlan& plan,
                     std::span<const ModuleGroup> groups);

/// Ranks on the first tp·cp·pp·dp GPUs: tensor parallel innermost, then context parallel, replicas,
/// pipeline (the default order of Megatron-LM, "tp-cp-ep-dp-pp"), each at the speed of its slowest
/// GPU.
Problem make_problem(const std::vector<PlacedModule>& modules, const LmmModel& model,
                     const Cluster& cluster, const ParallelPlan& plan);

/// So many GPUs side by side, in part of a node or on whole nodes: those that share the products of
/// a layer, or its experts.
CollectiveGroup tensor_group(const Cluster& cluster, int tp);

/// The GPUs that share the tokens of a sequence.
CollectiveGroup context_group(const Cluster& cluster, int tp, int cp);

/// The GPUs that hold the same weights outside experts, at the position where they are spread the
/// most.
CollectiveGroup replica_group(const Cluster& cluster, const GpuBlock& block);

/// The GPUs that hold the same experts.
CollectiveGroup expert_replica_group(const Cluster& cluster, const GpuBlock& block);

}  // namespace dipsim
