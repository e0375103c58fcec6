// SPDX-License-Identifier: Apache-2.0
// What passes do to the memory of their rank, by positions in its order: the rule of
// sim/graph/memory.hpp without times.
#pragma once

#include "schedulers/dip/replica_graph.hpp"

#include <span>
#include <vector>

namespace dipsim::dip {

/// Bytes that the rank holds after the pass minus those before it, if its pair uses `option`.
ByteCount held_change(const ReplicaGraph& replica, Index pass, const PairOption& option);

/// Bytes that the pass needs beyond those held before it, while it runs.
ByteCount needed_bytes(const ReplicaGraph& replica, Index pass, const PairOption& option);

/// Per rank: least free bytes at any position of the sequence; negative where it does not fit.
std::vector<ByteCount> least_free(const ReplicaGraph& replica, std::span<const Index> sequence,
                                  std::span<const Index> choice);

/// Whether every rank keeps to its limit.
bool keep_to_limit(const ReplicaGraph& replica, std::span<const Index> sequence,
                   std::span<const Index> choice);

}  // namespace dipsim::dip
