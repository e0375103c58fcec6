// SPDX-License-Identifier: Apache-2.0
// What holds for every schedule on every pipeline (docs/metrics.md, "invariants").
#pragma once

#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"

#include <string>

namespace dipsim::test {

/// The first invariant that this plan breaks, with where; "" where it keeps all of them: the graph
/// and the schedule are valid; both evaluators run it, without deadlock, to equal timelines; passes
/// take the times of their strategies, do not overlap on a cell and wait for what they need; memory
/// is what the ledger says, never below what is always held and at the end equal to it; the
/// makespan is no less than the bound; busy + idle = makespan on every cell.
std::string broken_invariant(const TaskGraph& graph, const Schedule& schedule);

}  // namespace dipsim::test
