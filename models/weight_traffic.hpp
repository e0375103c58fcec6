// SPDX-License-Identifier: Apache-2.0
// ZeRO-3: weights that are gathered before each pass, and gradients that are scattered behind it.
#pragma once

#include "models/lower.hpp"
#include "sim/graph/task_graph.hpp"

namespace dipsim {

/// Adds to a lowered draft of one rank per replica, its chunks in flow order on that rank: before
/// every F and B a Gather of the chunk's weights over the ranks that hold its weight set, behind
/// every B a Scatter of its gradients, both on the communication lane. Each replica runs its works
/// one by one, F along the chunks and B back; the gather for a pass may begin once the pass but one
/// before it has ended (prefetch of one, FSDP: arXiv 2304.11277 §3.3.2). Without `reshard` weights
/// stay gathered from F to B. A pass holds its gathered weights and those of the next pass, a B
/// also its gradients and those that are being scattered.
///
/// Throws Input where a replica has several ranks, or the replicas have different numbers of works:
/// they gather together.
void add_weight_traffic(TaskGraph& graph, const CostSource& costs, bool reshard);

}  // namespace dipsim
