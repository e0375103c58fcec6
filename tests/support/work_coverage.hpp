// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/task_graph.hpp"
#include "tests/support/random_problem.hpp"

#include <string>

namespace dipsim::test {

/// What a lowering of this problem has too much or lacks; "" where every layer of every module runs
/// forward on each instance of every microbatch exactly once, on its own replica, and backward
/// exactly where a gradient must arrive, with weight gradients where the module is trained.
std::string broken_work(const RandomProblem& problem, const TaskGraph& graph);

}  // namespace dipsim::test
