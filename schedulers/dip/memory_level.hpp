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
Choice uniform_choice(const ReplicaGraph& replica, RecomputeMode mode);

/// For each pair the strategy that holds least from F to its backward, the fastest of those.
Choice most_saving_choice(const ReplicaGraph& replica);

/// Pass times under a choice, one per pass.
void set_durations(const ReplicaGraph& replica, std::span<const Index> choice,
                   std::span<Nanoseconds> durations);

/// What one pair holds and needs at a memory level.
struct PairLevel {
  ByteCount held = 0;     ///< from F to its backward
  ByteCount forward = 0;  ///< during its forward
  ByteCount rebuilt = 0;  ///< during its backward
  ByteCount kept = 0;     ///< from I to W
};

/// What an order must respect if the pairs use a given choice.
struct MemoryLevel {
  std::vector<PairLevel> pairs;
  std::vector<ByteCount> room;          ///< per rank: for all of it and transients
  std::vector<ByteCount> reserve;       ///< per rank: most that any backward of it rebuilds
  std::vector<ByteCount> of_component;  ///< per component (microbatch) and rank: sum of held
  std::vector<ByteCount> working;  ///< likewise: most that one of its passes needs beyond the held
  std::vector<ByteCount> most_working;  ///< per rank: the largest of these
  std::vector<ByteCount> alone;         ///< per rank: peak when one component runs after the other
};

MemoryLevel memory_level(const ReplicaGraph& replica, std::span<const Index> choice);

/// Whether every rank has room for one microbatch after the other.
bool fits(const MemoryLevel& level);

/// Throws Infeasible, naming the rank and the bytes that are missing, unless fits(level).
void require_fit(const TaskGraph& graph, const ReplicaGraph& replica, const MemoryLevel& level);

}  // namespace dipsim::dip
