// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a parallel plan stand in a cluster.
#pragma once

#include "models/model.hpp"
#include "models/placed_module.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/network_time.hpp"
#include "sim/graph/lowering.hpp"

namespace dipsim {

/// Throws Input, naming the nearest legal value, unless the plan fits the cluster, tensor-parallel
/// groups share nodes evenly or take whole ones, and tp divides heads, FFN and hidden width of
/// every module.
void check_plan(const LmmModel& model, const Cluster& cluster, const ParallelPlan& plan);

/// Ranks on the first tp·pp·dp GPUs: tensor parallel innermost, then replicas, then pipeline (the
/// default order of Megatron-LM, "tp-cp-ep-dp-pp").
Problem make_problem(const std::vector<PlacedModule>& modules, const LmmModel& model,
                     const Cluster& cluster, const ParallelPlan& plan);

/// The GPUs that share the products of a layer: part of a node, or whole nodes.
CollectiveGroup tensor_group(const Cluster& cluster, int tp);

/// The GPUs that hold the same weights in all replicas.
CollectiveGroup replica_group(const Cluster& cluster, const ParallelPlan& plan);

}  // namespace dipsim
