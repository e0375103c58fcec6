// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/interleave.hpp"

#include <algorithm>
#include <bit>

namespace dipsim::dip {

namespace {

constexpr Index kWordBits = 64;

Index round_up(Index slots) { return (slots + kWordBits - 1) / kWordBits * kWordBits; }

}  // namespace

Interleaver::Interleaver(const ReplicaGraph& graph)
    : graph_(&graph),
      component_size_(graph.components, 0),
      empty_queues_(2 * graph.ranks.size()),
      first_state_(graph.ranks.size()),
      soft_room_(graph.ranks.size()),
      reserved_(graph.ranks.size()),
      clock_(graph),
      queues_(empty_queues_.size()),
      slot_(graph.passes.size()),
      place_(graph.pair_count()),
      key_(graph.ranks.size()),
      state_(graph.ranks.size()),
      unfinished_(graph.components),
      safe_(graph) {
  std::vector<Index> length(empty_queues_.size(), 0);
  std::vector<Index> weights(graph.ranks.size(), 0);
  for (Index pass = 0; pass < graph.passes.size(); ++pass) {
    const Index rank = graph.passes[pass].rank;
    ++(graph.is_weight(pass) ? weights[rank]
                             : length[2 * rank + (graph.is_forward(pass) ? Forward : Backward)]);
    ++component_size_[graph.component[graph.passes[pass].pair]];
  }
  weights_.resize(graph.passes.size() - graph.first_weight);
  for (std::size_t rank = 1; rank < weights.size(); ++rank) {
    first_state_[rank].weights = first_state_[rank - 1].weights + weights[rank - 1];
    first_state_[rank].weights_end = first_state_[rank].weights;
  }
  Index slots = 0;
  for (std::size_t q = 0; q < length.size(); ++q) {
    empty_queues_[q] = {.first = slots,
                        .last = slots + round_up(length[q]),
                        .hint = slots / kWordBits,
                        .arrivals = slots,
                        .arrivals_end = slots};
    slots = empty_queues_[q].last;
  }
  pass_at_.resize(slots);
  startable_.assign(slots / kWordBits, 0);
  arrivals_.resize(slots);
  sequence_.reserve(graph.passes.size());
}

std::span<const Index> Interleaver::run(const GroupOrder& order,
                                        std::span<const Nanoseconds> durations,
                                        const MemoryLevel& soft, const MemoryLevel& hard,
                                        const InterleaveRule& rule) {
  durations_ = durations;
  soft_ = &soft;
  hard_ = &hard;
  rule_ = rule;
  for (std::size_t rank = 0; rank < soft_room_.size(); ++rank) {
    soft_room_[rank] = static_cast<ByteCount>(
        rule.soft_share * static_cast<double>(soft.room[rank] - soft.reserve[rank]));
  }
  begin(order);
  while (sequence_.size() < graph_->passes.size()) {
    const Index rank = earliest_rank();
    const bool blocked = key_[rank] == kNever;
    const Index pass = blocked ? unblock() : pick(rank);
    if (pass != ReplicaGraph::kNone) {
      place(pass);
    } else if (blocked) {
      return {};
    }
  }
  return sequence_;
}

void Interleaver::begin(const GroupOrder& order) {
  clock_.reset();
  sequence_.clear();
  std::ranges::copy(empty_queues_, queues_.begin());
  std::ranges::fill(startable_, 0);
  std::ranges::fill(key_, kNever);
  std::ranges::copy(first_state_, state_.begin());
  assign_slots(order);
  std::ranges::copy(component_size_, unfinished_.begin());
  safe_.reset(*hard_);
  unsafe_seen_ = false;
  std::ranges::fill(reserved_, 0);
  for (Index pass = 0; pass < graph_->passes.size(); ++pass) {
    if (clock_.complete(pass)) {
      release(pass);
    }
  }
}

void Interleaver::assign_slots(const GroupOrder& order) {
  // Counts up in `startable`, which stands at the first slot only here.
  const auto assign = [&](Direction direction, Index first, Index last) {
    for (Index pass = first; pass < last; ++pass) {
      Queue& of_rank = queue(graph_->passes[pass].rank, direction);
      const Index slot = of_rank.first + of_rank.startable++;
      slot_[pass] = slot;
      pass_at_[slot] = pass;
    }
  };
  for (const Index group : order.forward) {
    assign(Forward, graph_->groups[group].first_forward, graph_->groups[group].last_forward);
  }
  for (const Index group : order.backward) {
    assign(Backward, graph_->groups[group].first_backward, graph_->groups[group].last_backward);
  }
  for (Queue& each : queues_) {
    each.startable = 0;
  }
  order_ = &order;
  place_known_ = false;
}

/// Places of forwards among those of all ranks: few runs need them.
void Interleaver::find_places() {
  Index next = 0;
  for (const Index group : order_->forward) {
    const Group& of = graph_->groups[group];
    for (Index pass = of.first_forward; pass < of.last_forward; ++pass) {
      place_[pass] = next++;
    }
  }
  place_known_ = true;
}

/// Queues a pass whose last input has become known.
void Interleaver::release(Index pass) {
  const Index rank = graph_->passes[pass].rank;
  if (graph_->is_weight(pass)) {
    weights_[state_[rank].weights_end++] = pass;  // its rank has just run the backward
    return;
  }
  const Direction direction = graph_->is_forward(pass) ? Forward : Backward;
  const Nanoseconds at = clock_.ready(pass);
  const Nanoseconds free = clock_.rank_free(rank);
  Queue& waiting = queue(rank, direction);
  if (at <= free) {
    make_startable(waiting, slot_[pass]);
  } else {
    add_arrival(waiting, at, slot_[pass]);
  }
  RankState& state = state_[rank];
  if (direction == Backward && state.backward_off) {
    state.backward_off = false;  // this one may fit
    update_key(rank);
  } else if (direction == Forward && state.forward_off && rule_.whole_microbatches) {
    state.forward_off = at > free;  // its microbatch may have begun
    update_key(rank);
  } else if (waiting_weights(state) > 0) {
    update_key(rank);  // the idle time that a W was to fill may have become shorter
  } else if (direction == Backward || !state.forward_off) {
    key_[rank] = std::min(key_[rank], std::max(free, at));
  }
}

Index Interleaver::earliest_rank() const {
  // Without branches, which would be mispredicted half of the time.
  Nanoseconds least = key_[0];
  Index at = 0;
  for (Index rank = 1; rank < key_.size(); ++rank) {
    const bool less = key_[rank] < least;
    least = less ? key_[rank] : least;
    at = less ? rank : at;
  }
  return at;
}

/// The pass that the rank runs next, or none when memory has switched off its only queue.
Index Interleaver::pick(Index rank) {
  if (state_[rank].weight_next) {
    return take_weight(rank);
  }
  const Nanoseconds now = key_[rank];
  Queue& forward = queue(rank, Forward);
  Queue& backward = queue(rank, Backward);
  RankState& state = state_[rank];
  const Index seen = backward.startable;
  const Index seen_forwards = forward.startable;
  if (arrived(forward, now)) {
    advance(forward, now);
  }
  if (arrived(backward, now)) {
    advance(backward, now);
  }
  state.backward_off = state.backward_off && backward.startable == seen;
  state.forward_off =
      state.forward_off && !(rule_.whole_microbatches && forward.startable > seen_forwards);
  if (forward.startable > 0 && !state.forward_off &&
      (backward.startable == 0 || state.backward_off || state.last == Backward)) {
    const Index slot = allowed_slot(rank);
    if (slot < forward.last) {
      return take(forward, slot);
    }
    state.forward_off = true;
  }
  if (backward.startable > 0 && !state.backward_off) {
    return pick_backward(rank);
  }
  update_key(rank);
  return ReplicaGraph::kNone;
}

/// The backward of highest priority that fits; where none does, a W that waits, which frees memory.
Index Interleaver::pick_backward(Index rank) {
  Queue& backward = queue(rank, Backward);
  for (Index slot = best_slot(backward); slot < backward.last;
       slot = next_slot(backward, slot + 1)) {
    if (allowed_backward(rank, pass_at_[slot])) {
      return take(backward, slot);
    }
  }
  if (waiting_weights(state_[rank]) > 0) {
    return take_weight(rank);
  }
  state_[rank].backward_off = true;
  update_key(rank);
  return ReplicaGraph::kNone;
}

/// With every queue empty or off: the highest-priority forward that the hard level permits; where
/// microbatches begin as wholes, of one that has begun if there is any.
Index Interleaver::unblock() {
  if (!place_known_) {
    find_places();
  }
  Index best = ReplicaGraph::kNone;
  for (const bool begun : {true, false}) {
    for (Index rank = 0; rank < key_.size() && (rule_.whole_microbatches || !begun); ++rank) {
      best = earlier_allowed(rank, begun, best);
    }
    if (best != ReplicaGraph::kNone) {
      return take(queue(graph_->passes[best].rank, Forward), slot_[best]);
    }
  }
  return ReplicaGraph::kNone;
}

/// The rank's forward of highest priority that the hard level permits, where that is higher than
/// the priority of `best`; else `best`. Only of microbatches that have begun, if asked.
Index Interleaver::earlier_allowed(Index rank, bool begun, Index best) {
  Queue& forward = queue(rank, Forward);
  advance(forward, kNever - 1);
  for (Index slot = next_slot(forward, forward.first); slot < forward.last;
       slot = next_slot(forward, slot + 1)) {
    const Index pass = pass_at_[slot];
    if (best != ReplicaGraph::kNone && place_[pass] >= place_[best]) {
      return best;
    }
    const Index pair = graph_->passes[pass].pair;
    if ((!begun || safe_.has_begun(graph_->component[pair])) && allowed_hard(rank, pair)) {
      return pass;
    }
  }
  return best;
}

bool Interleaver::allowed_hard(Index rank, Index pair) {
  if (state_[rank].hard_held + hard_->pairs[pair].forward > hard_->room[rank]) {
    return false;
  }
  const bool safe = safe_.permits(pair);
  unsafe_seen_ = unsafe_seen_ || !safe;
  return safe;
}

bool Interleaver::allowed(Index rank, Index pair) {
  return state_[rank].soft_held + soft_->pairs[pair].forward <= soft_room_[rank] &&
         allowed_hard(rank, pair);
}

/// The forward that may run now: that of highest priority or, where microbatches begin as wholes,
/// the first that may. The end of the queue where there is none.
Index Interleaver::allowed_slot(Index rank) {
  Queue& forward = queue(rank, Forward);
  Index slot = best_slot(forward);
  if (!rule_.whole_microbatches) {
    return allowed(rank, graph_->passes[pass_at_[slot]].pair) ? slot : forward.last;
  }
  for (; slot < forward.last; slot = next_slot(forward, slot + 1)) {
    const Index pair = graph_->passes[pass_at_[slot]].pair;
    if (may_begin(graph_->component[pair]) && allowed(rank, pair)) {
      break;
    }
  }
  return slot;
}

/// Whether all its forwards have room beside those that have begun.
bool Interleaver::may_begin(Index component) {
  if (safe_.has_begun(component)) {
    return true;
  }
  const ByteCount* needed = soft_->of_component.data() + component * reserved_.size();
  for (Index rank = 0; rank < reserved_.size(); ++rank) {
    if (needed[rank] > 0 && reserved_[rank] + needed[rank] > soft_room_[rank]) {
      unsafe_seen_ = true;
      return false;
    }
  }
  return true;
}

/// There must be room while it runs, and for its W behind it.
bool Interleaver::allowed_backward(Index rank, Index pass) const {
  const Index pair = graph_->passes[pass].pair;
  const PairLevel& of_pair = hard_->pairs[pair];
  const ByteCount held = state_[rank].hard_held;
  const ByteCount room = hard_->room[rank];
  if (held + of_pair.rebuilt + graph_->transient[pass] > room) {
    return false;
  }
  const Index weight = graph_->weight[pair];
  return weight == ReplicaGraph::kNone ||
         held - of_pair.held + of_pair.kept + graph_->transient[weight] <= room;
}

Index Interleaver::take_weight(Index rank) { return weights_[state_[rank].weights++]; }

void Interleaver::place(Index pass) {
  const Index rank = graph_->passes[pass].rank;
  clock_.run(pass, durations_[pass], [this](const Hop& hop, Nanoseconds, bool) {
    if (clock_.complete(hop.to)) {
      release(hop.to);
    }
  });
  sequence_.push_back(pass);
  account(pass, rank);
  update_key(rank);
}

void Interleaver::account(Index pass, Index rank) {
  RankState& state = state_[rank];
  const Index pair = graph_->passes[pass].pair;
  const Index component = graph_->component[pair];
  const PassKind kind = graph_->kind(pass);
  const auto change_of = [&](const MemoryLevel& level) {
    const PairLevel& of_pair = level.pairs[pair];
    switch (kind) {
      case PassKind::Forward:
        return of_pair.held;
      case PassKind::Backward:
        return of_pair.kept - of_pair.held;
      case PassKind::Weight:
        break;
    }
    return -of_pair.kept;
  };
  state.soft_held += change_of(*soft_);
  state.hard_held += change_of(*hard_);
  if (kind == PassKind::Forward) {
    if (rule_.whole_microbatches && !safe_.has_begun(component)) {
      for (Index r = 0; r < reserved_.size(); ++r) {
        reserved_[r] += soft_->of_component[component * reserved_.size() + r];
      }
      switch_on_forwards();  // its others may run now
    }
    safe_.run_forward(pair);
    state.last = Forward;
  } else {
    state.forward_off = false;
    state.backward_off = false;
  }
  if (kind == PassKind::Backward) {
    if (rule_.whole_microbatches) {
      reserved_[rank] -= soft_->pairs[pair].held;
    }
    safe_.run_backward(pair);
    state.last = Backward;
  }
  if (--unfinished_[component] == 0) {
    safe_.end(component);
  }
  if (kind == PassKind::Backward && unsafe_seen_) {
    switch_on_forwards();
  }
}

/// What was refused for the sake of the others may be possible now, on every rank.
void Interleaver::switch_on_forwards() {
  unsafe_seen_ = false;
  for (Index rank = 0; rank < key_.size(); ++rank) {
    if (state_[rank].forward_off) {
      state_[rank].forward_off = false;
      update_key(rank);
    }
  }
}

void Interleaver::update_key(Index rank) {
  const Nanoseconds free = clock_.rank_free(rank);
  const auto arrival_of = [&](const Queue& waiting) {
    return waiting.arrivals < waiting.arrivals_end ? std::max(free, arrivals_[waiting.arrivals].at)
                                                   : kNever;
  };
  const auto key_of = [&](const Queue& waiting) {
    return waiting.startable > 0 ? free : arrival_of(waiting);
  };
  RankState& state = state_[rank];
  // Of the backwards that wait none fits; one that is still to come may.
  Nanoseconds key =
      state.backward_off ? arrival_of(queue(rank, Backward)) : key_of(queue(rank, Backward));
  if (!state.forward_off) {
    key = std::min(key, key_of(queue(rank, Forward)));
  } else if (rule_.whole_microbatches) {
    key = std::min(key, arrival_of(queue(rank, Forward)));  // its microbatch may have begun
  }
  state.weight_next = false;
  if (const Index waiting = waiting_weights(state); waiting > 0) {
    const double needed =
        rule_.weights.fit * static_cast<double>(durations_[weights_[state.weights]]);
    state.weight_next = waiting > static_cast<Index>(rule_.weights.backlog) ||
                        static_cast<double>(key - free) >= needed;
    key = state.weight_next ? free : key;
  }
  key_[rank] = key;
}

/// Inserts by arrival, from the back: data arrive nearly in order.
void Interleaver::add_arrival(Queue& waiting, Nanoseconds at, Index slot) {
  Index place = waiting.arrivals_end++;
  while (place > waiting.arrivals && arrivals_[place - 1].at > at) {
    arrivals_[place] = arrivals_[place - 1];
    --place;
  }
  arrivals_[place] = {.at = at, .slot = slot};
}

/// Makes startable what has arrived by `now`.
void Interleaver::advance(Queue& waiting, Nanoseconds now) {
  while (arrived(waiting, now)) {
    make_startable(waiting, arrivals_[waiting.arrivals++].slot);
  }
}

void Interleaver::make_startable(Queue& waiting, Index slot) {
  startable_[slot / kWordBits] |= std::uint64_t{1} << (slot % kWordBits);
  waiting.hint = std::min(waiting.hint, slot / kWordBits);
  ++waiting.startable;
}

/// The startable slot of the highest priority; there is one.
Index Interleaver::best_slot(Queue& waiting) const {
  while (startable_[waiting.hint] == 0) {
    ++waiting.hint;
  }
  return waiting.hint * kWordBits + static_cast<Index>(std::countr_zero(startable_[waiting.hint]));
}

/// The first startable slot from `slot` on; the end of the queue when there is none.
Index Interleaver::next_slot(const Queue& waiting, Index slot) const {
  while (slot < waiting.last) {
    const std::uint64_t word = startable_[slot / kWordBits] >> (slot % kWordBits);
    if (word != 0) {
      return slot + static_cast<Index>(std::countr_zero(word));
    }
    slot = slot / kWordBits * kWordBits + kWordBits;
  }
  return waiting.last;
}

Index Interleaver::take(Queue& waiting, Index slot) {
  startable_[slot / kWordBits] &= ~(std::uint64_t{1} << (slot % kWordBits));
  --waiting.startable;
  return pass_at_[slot];
}

}  // namespace dipsim::dip
