// SPDX-License-Identifier: Apache-2.0
// Priorities of the pipeline segments: what the ordering search permutes.
#pragma once

#include "schedulers/dip/replica_graph.hpp"

#include <vector>

namespace dipsim::dip {

/// The groups of a replica from highest to lowest priority. The two directions have queues of
/// their own, so only the order inside each acts: two permutations instead of one of all segments.
struct GroupOrder {
  std::vector<Index> forward;
  std::vector<Index> backward;
  friend bool operator==(const GroupOrder&, const GroupOrder&) = default;
};

/// Microbatch by microbatch, inside each in the flow order of the modules (encoders first); the
/// backward inherits the priorities of the forward.
GroupOrder natural_order(const ReplicaGraph& graph);

/// All passes in the order in which a microbatch runs that has the ranks to itself: forwards in
/// natural order, then backwards against it, module by module, each W behind its I. Follows
/// precedence inside each microbatch.
std::vector<Index> natural_passes(const ReplicaGraph& graph);

/// Orders to start a search from: the natural one; the microbatches (each whole, in both
/// directions) by their time of F and B at the fastest strategies, lightest first, heaviest first,
/// and light at both ends; and each of these with the lightest first and the second lightest last,
/// because the pipeline fills with the first and drains with the last.
std::vector<GroupOrder> start_orders(const ReplicaGraph& graph);

}  // namespace dipsim::dip
