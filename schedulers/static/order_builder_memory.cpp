// SPDX-License-Identifier: Apache-2.0
// What memory allows an order under construction.
#include "schedulers/static/order_builder.hpp"

#include <algorithm>
#include <cstddef>

namespace dipsim {

/// What a rank needs for a microbatch from now on, what it holds for it included.
Bytes OrderBuilder::needed(int rank, int microbatch) const {
  const std::size_t row = of_rank(rank, microbatch);
  return needs_[row * passes_per_microbatch() + static_cast<std::size_t>(passes_done_[row])];
}

bool OrderBuilder::admits_forwards(int stage, int count) const {
  const int first = forwards(stage);
  const int end = first + count;
  if (end > instance_.shape.microbatches) {
    return false;
  }
  const int number = stage_at(stage).shape.rank;
  const RankState& rank = rank_at(number);
  const Bytes limit = facts_at(number).limit;
  Bytes held = rank.active;
  for (int m = first; m < end; ++m) {
    const PairCost& cost = instance_.cost(stage, m);
    held += cost.held;
    if (held + cost.during_forward > limit) {
      return false;
    }
  }
  if (held + facts_at(number).most_needed <= limit) {
    return true;
  }
  // Each microbatch, once the older ones are finished, beside all that the younger ones hold.
  for (int m = rank.oldest; m < end; ++m) {
    held -= active_[of_rank(number, m)];
    if (m >= first) {
      held -= instance_.cost(stage, m).held;
    }
    if (held + needed(number, m) > limit) {
      return false;
    }
  }
  return true;
}

bool OrderBuilder::admits_backward(int stage) const {
  const StageState& state = stage_at(stage);
  const PairCost& cost = instance_.cost(stage, state.backwards);
  const Bytes active = rank_at(state.shape.rank).active;
  const Bytes limit = facts_at(state.shape.rank).limit;
  return active + cost.during_backward <= limit &&
         active - cost.held + cost.kept + cost.during_weight <= limit;
}

/// Whether a forward fits beside the W's that wait, and these still can run after it.
bool OrderBuilder::forward_fits(const PairCost& cost, Bytes kept, Bytes during_weight,
                                int rank) const {
  const Bytes held = rank_at(rank).active + kept + cost.held;
  return held + std::max(cost.during_forward, during_weight) <= facts_at(rank).limit;
}

Duration OrderBuilder::weights_before_forward(int stage) const {
  const int number = stage_at(stage).shape.rank;
  const RankState& rank = rank_at(number);
  const PairCost& next = instance_.cost(stage, forwards(stage));
  Bytes kept = rank.kept;
  Duration time{0};
  for (std::size_t w = rank.next_weight; w < rank.weights.size(); ++w) {
    if (forward_fits(next, kept, facts_at(number).most_during_weight, number)) {
      break;
    }
    const PairCost& weight = instance_.cost(rank.weights[w].stage, rank.weights[w].microbatch);
    kept -= weight.kept;
    time += weight.weight;
  }
  return time;
}

void OrderBuilder::make_room_for_forward(int stage) {
  const int rank = stage_at(stage).shape.rank;
  const PairCost& next = instance_.cost(stage, forwards(stage));
  while (weight_waits(rank) &&
         !forward_fits(next, rank_at(rank).kept, facts_at(rank).most_during_weight, rank)) {
    place_weight(rank);
  }
}

void OrderBuilder::make_room_for_backward(int stage) {
  const int number = stage_at(stage).shape.rank;
  const RankState& rank = rank_at(number);
  const Bytes limit = facts_at(number).limit;
  const PairCost& next = instance_.cost(stage, backwards(stage));
  const auto fits = [&] {
    const Bytes held = rank.active + rank.kept;
    return held + next.during_backward <= limit &&
           held - next.held + next.kept + facts_at(number).most_during_weight <= limit;
  };
  while (weight_waits(number) && !fits()) {
    place_weight(number);
  }
}

}  // namespace dipsim
