// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// One shortest cycle among the waits, in order; empty when there is none.
std::vector<WaitEdge> find_cycle(std::size_t tasks, std::span<const WaitEdge> waits);

/// Throws Input: "deadlock: A waits for B (reason) … waits for A".
[[noreturn]] void fail_deadlock(const TaskGraph& graph, std::span<const WaitEdge> waits);

}  // namespace dipsim
