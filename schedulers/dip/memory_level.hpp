// SPDX-License-Identifier: Apache-2.0
// Strategies given in advance, and what an order must respect under them.
#pragma once

#include "schedulers/dip/replica_graph.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <vector>

namespace dipsim::dip {

/// For each pair the row of its strategy among options_of(pair).
using Choice = std::vector<Index>;

/// The same mode for all pairs, as uniform_strategies() reads it.
Choice uniform_choice(const TaskGraph& graph, const ReplicaGraph& replica, RecomputeMode mode);

/// For each pair the strategy that holds least, the fastest of those.
Choice most_saving_choice(const ReplicaGraph& replica);

/// Pass times under a choice, one per pass.
void set_durations(const ReplicaGraph& replica, std::span<const Index> choice,
                   std::span<Nanoseconds> durations);

/// What an order must respect if the pairs use a given choice.
struct MemoryLevel {
  std::vector<ByteCount> held;     ///< per pair
  std::vector<ByteCount> room;     ///< per rank: for held bytes; what passes need while they run
                                   ///< (transients, rebuilt activations) is taken off
  std::vector<ByteCount> largest;  ///< per rank: most that one component (microbatch) holds
};

MemoryLevel memory_level(const ReplicaGraph& replica, std::span<const Index> choice);

/// Whether every rank has room for one microbatch after the other.
bool fits(const MemoryLevel& level);

/// Throws Infeasible, naming the rank and the bytes that are missing, unless fits(level).
void require_fit(const TaskGraph& graph, const ReplicaGraph& replica, const MemoryLevel& level);

}  // namespace dipsim::dip
