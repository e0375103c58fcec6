// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/core/ids.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>

namespace dipsim::exact {

/// Where errors of the exact solver are.
inline constexpr const char* kWhere = "exact solver";

/// Throws Input on graphs and choices that solve_exact() does not take, as far as that does not
/// depend on the number of passes or on what fits.
void require_covered(const TaskGraph& graph, std::span<const StrategyId> chosen);

}  // namespace dipsim::exact
