// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/held.hpp"

#include <algorithm>

namespace dipsim::dip {

ByteCount held_change(const ReplicaGraph& replica, Index pass, const PairOption& option) {
  const Index pair = replica.passes[pass].pair;
  switch (replica.kind(pass)) {
    case PassKind::Forward:
      return replica.backward[pair] == ReplicaGraph::kNone ? 0 : option.held;
    case PassKind::Backward:
      return (replica.weight[pair] == ReplicaGraph::kNone ? 0 : option.kept) - option.held;
    case PassKind::Weight:
      break;
  }
  return -option.kept;
}

ByteCount needed_bytes(const ReplicaGraph& replica, Index pass, const PairOption& option) {
  switch (replica.kind(pass)) {
    case PassKind::Forward:
      return replica.transient[pass] + option.held;
    case PassKind::Backward:
      return replica.transient[pass] + option.rebuilt;
    case PassKind::Weight:
      break;
  }
  return replica.transient[pass];
}

std::vector<ByteCount> least_free(const ReplicaGraph& replica, std::span<const Index> sequence,
                                  std::span<const Index> choice) {
  std::vector<ByteCount> free = replica.room;
  std::vector<ByteCount> least = replica.room;
  for (const Index pass : sequence) {
    const Index pair = replica.passes[pass].pair;
    const Index rank = replica.passes[pass].rank;
    const PairOption& option = replica.options_of(pair)[choice[pair]];
    least[rank] = std::min(least[rank], free[rank] - needed_bytes(replica, pass, option));
    free[rank] -= held_change(replica, pass, option);
  }
  return least;
}

bool keep_to_limit(const ReplicaGraph& replica, std::span<const Index> sequence,
                   std::span<const Index> choice) {
  return std::ranges::min(least_free(replica, sequence, choice)) >= 0;
}

}  // namespace dipsim::dip
