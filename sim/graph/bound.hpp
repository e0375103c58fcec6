// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/task_graph.hpp"

namespace dipsim {

/// A makespan that no schedule of this graph can beat, whatever its order and memory choice: the
/// larger of
///  - over cells: least time before a first pass can start + total load + least time after its
///    last pass, and
///  - the longest path through the graph,
/// at the cheapest allowed strategy of each pair (docs/metrics.md, "lower bound").
struct LowerBound {
  Duration makespan{0};
  Duration critical_path{0};
  CellId cell;  ///< the cell that gives the load bound
};

/// Throws Input when the edges contain a cycle.
LowerBound lower_bound(const TaskGraph& graph);

}  // namespace dipsim
