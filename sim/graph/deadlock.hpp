// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// `task` can't start (or, for a sender, end) before `needs`, for this reason.
struct WaitEdge {
  TaskId task;
  TaskId needs;
  std::string_view reason;
};

/// A cycle among the waits, in order, with no shortcut through the task that it starts at; empty
/// when there is none.
std::vector<WaitEdge> find_cycle(std::size_t tasks, std::span<const WaitEdge> waits);

/// What the tasks of a schedule wait for: the results of others, the steps before them on their
/// cells, and the windows of its offloads. Both tasks of an overlapped step wait for the inputs of
/// both.
std::vector<WaitEdge> schedule_waits(const TaskGraph& graph, const Schedule& schedule);

/// Throws Input: "deadlock: A waits for B (reason) … waits for A".
[[noreturn]] void fail_deadlock(const TaskGraph& graph, std::span<const WaitEdge> waits);

}  // namespace dipsim
