// SPDX-License-Identifier: Apache-2.0
// The full evaluator: discrete events on compute, link and copy lanes.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/engine/flow_network.hpp"
#include "sim/graph/engine_options.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

namespace dipsim {

/// Runs the schedule. Times are those of the order evaluator where both apply (eager sends queueing
/// by PairDirection, no host overhead, no jitter, no contention). Deterministic: events at one
/// instant are handled in a fixed order.
///
/// `graph` must be valid (sim/graph/task_graph.hpp). Throws Input, printing the waiting cycle, when
/// the schedule deadlocks, on a schedule that is not valid for the graph, and with
/// `options.contention`: that takes a cluster.
Timeline simulate(const TaskGraph& graph, const Schedule& schedule,
                  const EngineOptions& options = {});

/// The same on a cluster: `options.contention` builds the network of the graph there. Throws Input
/// also where a cell has GPUs that the cluster lacks.
Timeline simulate(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options,
                  const Cluster& cluster);

/// The same with contention on this network, whatever the options say of it.
Timeline simulate(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options,
                  const FlowNetwork& network);

}  // namespace dipsim
