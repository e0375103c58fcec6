// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/pair_places.hpp"

#include <algorithm>
#include <numeric>

namespace dipsim::dip {

namespace {

/// Largest difference of neighbours.
std::size_t largest_step(const std::vector<Index>& sums) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < sums.size(); ++i) {
    largest = std::max<std::size_t>(largest, sums[i] - sums[i - 1]);
  }
  return largest;
}

}  // namespace

PairPlaces::PairPlaces(const ReplicaGraph& replica)
    : graph_(&replica),
      pairs_(replica.pair_count()),
      first_pair_(replica.ranks.size() + 1, 0),
      first_slot_(replica.ranks.size() + 1, 0),
      next_slot_(replica.ranks.size()),
      empty_(replica.passes.size()),
      ends_(replica.passes.size()),
      place_(replica.pair_count()) {
  for (Index id = 0; id < replica.passes.size(); ++id) {
    const Index rank = replica.passes[id].rank;
    ++first_slot_[rank + 1];
    first_pair_[rank + 1] += replica.is_forward(id) ? 1U : 0U;
  }
  std::partial_sum(first_pair_.begin(), first_pair_.end(), first_pair_.begin());
  std::partial_sum(first_slot_.begin(), first_slot_.end(), first_slot_.begin());
  std::vector<Index> next(first_pair_.begin(), first_pair_.end() - 1);
  for (Index pair = 0; pair < pairs_.size(); ++pair) {
    pairs_[next[replica.passes[pair].rank]++] = pair;
  }
}

void PairPlaces::find(std::span<const Index> sequence) {
  const ReplicaGraph& graph = *graph_;
  std::copy(first_slot_.begin(), first_slot_.end() - 1, next_slot_.begin());
  for (const Index id : sequence) {
    const Pass& pass = graph.passes[id];
    const Index first = first_slot_[pass.rank];
    const Index slot = next_slot_[pass.rank]++;
    empty_[slot] = graph.room[pass.rank] - graph.transient[id];
    PairPlace& place = place_[pass.pair];
    if (graph.is_forward(id)) {
      place.first = slot - first;
    } else {
      ends_[first + place.last] = ReplicaGraph::kNone;
    }
    if (!graph.is_weight(id)) {
      place.backward = slot - first;
    }
    place.last = slot - first;
    ends_[slot] = pass.pair;
  }
}

std::size_t PairPlaces::most_positions() const { return largest_step(first_slot_); }

std::size_t PairPlaces::most_pairs() const { return largest_step(first_pair_); }

}  // namespace dipsim::dip
