// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/split_backwards.hpp"

#include "schedulers/dip/held.hpp"

#include <cstddef>
#include <vector>

namespace dipsim::dip {

namespace {

/// The option of the pair that differs from the chosen one only in when W runs; its own place when
/// there is none.
Index split_twin(const ReplicaGraph& replica, Index pair, Index chosen) {
  const auto options = replica.options_of(pair);
  const PairOption& whole = options[chosen];
  for (Index o = 0; o < options.size(); ++o) {
    const PairOption& option = options[o];
    if (option.weight > 0 && option.mode == whole.mode && option.held == whole.held &&
        option.rebuilt == whole.rebuilt && option.forward == whole.forward &&
        option.backward + option.weight == whole.backward) {
      return o;
    }
  }
  return chosen;
}

}  // namespace

void split_where_it_fits(const ReplicaGraph& replica, Composition& composition) {
  // W stands right behind its I, so what it keeps is there between these two only: it replaces what
  // the pair held, and competes with nothing but the limit.
  std::vector<ByteCount> held(replica.ranks.size(), 0);
  std::vector<Index> twin = composition.choice;
  for (const Index pass : composition.sequence) {
    const Index rank = replica.passes[pass].rank;
    const Index pair = replica.passes[pass].pair;
    const PairOption& option = replica.options_of(pair)[composition.choice[pair]];
    const Index weight = replica.weight[pair];
    held[rank] += held_change(replica, pass, option);
    if (replica.kind(pass) != PassKind::Backward || weight == ReplicaGraph::kNone ||
        option.weight > 0) {
      continue;
    }
    const Index split = split_twin(replica, pair, composition.choice[pair]);
    const ByteCount kept = replica.options_of(pair)[split].kept;
    if (held[rank] + kept + replica.transient[weight] <= replica.room[rank]) {
      twin[pair] = split;
    }
  }
  composition.choice = twin;
  composition.makespan = makespan_of(replica, composition.sequence, composition.choice);
}

}  // namespace dipsim::dip
