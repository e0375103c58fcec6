// SPDX-License-Identifier: Apache-2.0
// The schedule searches: from one replica's task graph to an order and strategies.
#pragma once

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/options.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/graph/task_graph.hpp"

#include <vector>

namespace dipsim::dip {

/// The paper's search: the best way for the natural order, then the tree search over priorities;
/// without options.interleaver Megatron's order instead of both.
/// Throws Infeasible where not even one microbatch after the other fits.
Composition plan_by_tree(const TaskGraph& graph, const ReplicaGraph& replica,
                         const DipOptions& options);

/// dip-plus: the best ways for the natural order, simulated annealing over priorities and ways,
/// then pass orders and strategies improved in turns outside the space of priorities. Never worse
/// than where it starts. Throws as plan_by_tree().
Composition plan_by_descent(const TaskGraph& graph, const ReplicaGraph& replica,
                            const DipOptions& options);

/// dip-zb: plan_by_descent() with whole backwards, where the graph has strategies for them, and
/// with split ones; the better of the two, after the backwards of the first have been split where
/// memory allows, and both refined with W moving freely. So it is never worse than dip-plus on the
/// same graph with the same options. Behind the best plan stands that of dip-plus, where it is
/// another one: offloading may turn their order round. Throws as plan_by_tree().
std::vector<Composition> plan_split_by_descent(const TaskGraph& graph, const ReplicaGraph& replica,
                                               const DipOptions& options);

}  // namespace dipsim::dip
