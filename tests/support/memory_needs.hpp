// SPDX-License-Identifier: Apache-2.0
// What orders need of memory, by places in the order instead of times, and limits drawn from it.
#pragma once

#include "sim/core/random.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"

#include <vector>

namespace dipsim::test {

/// The last pass that needs what a pair holds from its F on: B or I, else W, else F itself.
TaskId reader_of(const Pair& pair);

/// Most that each rank holds at any place of its order, passes that take no time included. Never
/// less than the peak of a timeline. For ranks of one cell each.
std::vector<Bytes> peaks_in_order(const TaskGraph& graph, const Schedule& schedule);

/// Each replica's microbatches one after the other: all forwards, module by module; then all
/// backwards, in the reverse order of the modules, each W behind its I.
Schedule one_after_the_other(const TaskGraph& graph, const std::vector<StrategyId>& chosen);

/// For each pair the strategy that holds least from F to its backward; among these the one that
/// holds least from I to W, then the fastest.
std::vector<StrategyId> most_saving(const TaskGraph& graph);

/// More than any order of this graph holds on each rank, whatever the strategies.
std::vector<Bytes> everything_kept(const TaskGraph& graph);

/// Per rank one + u (all - one), where `one` is what the rank needs at least if the microbatches
/// run one after the other, and `all` more than it can ever hold: u = 0 in 1 of 4 cases, up to 0.3
/// in half of them, else up to 1. In half of the cases all ranks get the largest of these limits,
/// as equal GPUs do. In 1 of 10 cases one rank then gets less than it needs.
std::vector<Bytes> tight_limits(const TaskGraph& graph, const std::vector<StrategyId>& chosen,
                                RandomStream& random);

}  // namespace dipsim::test
