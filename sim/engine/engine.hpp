// SPDX-License-Identifier: Apache-2.0
// The full evaluator: discrete events on compute, link and copy lanes.
#pragma once

#include "sim/graph/engine_options.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

namespace dipsim {

/// Runs the schedule. Times are those of the order evaluator where both apply (eager sends queueing
/// by PairDirection, no host overhead, no jitter). Deterministic: events at one instant are handled
/// in a fixed order.
///
/// `graph` must be valid (sim/graph/task_graph.hpp). Throws Input, printing the waiting cycle, when
/// the schedule deadlocks, and on a schedule that is not valid for the graph.
Timeline simulate(const TaskGraph& graph, const Schedule& schedule,
                  const EngineOptions& options = {});

}  // namespace dipsim
