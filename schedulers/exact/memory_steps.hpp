// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/exact/problem.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <vector>

namespace dipsim::exact {

/// What running a pass does to the memory of its rank, in the terms of Pass.
struct MemoryStep {
  ByteCount needs = 0;
  ByteCount change = 0;
};

/// One per task; tasks that are no passes do nothing. The rules of memory_curves() read along the
/// order of a rank: what ends is released before what starts is taken, so between two passes only
/// the changes count.
std::vector<MemoryStep> memory_steps(const TaskGraph& graph, std::span<const StrategyId> chosen);

}  // namespace dipsim::exact
