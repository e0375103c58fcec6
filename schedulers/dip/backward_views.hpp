// SPDX-License-Identifier: Apache-2.0
// A replica graph whose backward is split, seen with fewer strategies: all of a kind.
#pragma once

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <optional>
#include <vector>

namespace dipsim::dip {

/// A graph with some of the passes and strategies of another one.
struct GraphView {
  ReplicaGraph graph;
  std::vector<Index> pass_of;    ///< per pass of `graph`: that of the other
  std::vector<Index> option_of;  ///< per row of graph.options: its place among the pair's options
};

/// Backwards as they are without the split: the strategies that do W inside I and leave nothing for
/// it (Draft::weights_at_once), and no W. None where a pair with W has no such strategy.
std::optional<GraphView> whole_backwards(const ReplicaGraph& replica);

/// The strategies that leave time to W. Pairs without such a one keep what they have.
GraphView split_backwards(const ReplicaGraph& replica);

/// A composition of the view as one of the whole graph: each W that the view lacks follows its
/// backward at once. Takes as long.
Composition expand(const ReplicaGraph& replica, const GraphView& view,
                   const Composition& composition);

}  // namespace dipsim::dip
