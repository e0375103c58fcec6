// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/interleave.hpp"

#include "sim/core/error.hpp"

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
      clock_(graph),
      queues_(empty_queues_.size()),
      slot_(graph.passes.size()),
      key_(graph.ranks.size()),
      state_(graph.ranks.size()),
      unfinished_(graph.components),
      component_held_(graph.components * graph.ranks.size()),
      listed_(graph.components) {
  std::vector<Index> length(empty_queues_.size(), 0);
  for (Index pass = 0; pass < graph.passes.size(); ++pass) {
    const Direction direction = graph.is_forward(pass) ? Forward : Backward;
    ++length[2 * graph.passes[pass].rank + direction];
    ++component_size_[graph.component[graph.passes[pass].pair]];
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
  priority_.resize(slots);
  startable_.assign(slots / kWordBits, 0);
  arrivals_.resize(slots);
  sequence_.reserve(graph.passes.size());
  leaders_.reserve(graph.components);

  std::vector<bool> seen(graph.components, false);
  for (const Group& group : graph.groups) {
    group_component_first_.push_back(static_cast<Index>(group_component_.size()));
    for (Index pair = group.first_forward; pair < group.last_forward; ++pair) {
      const Index component = graph.component[pair];
      if (!seen[component]) {
        seen[component] = true;
        group_component_.push_back(component);
      }
    }
    for (std::size_t c = group_component_first_.back(); c < group_component_.size(); ++c) {
      seen[group_component_[c]] = false;
    }
  }
  group_component_first_.push_back(static_cast<Index>(group_component_.size()));
}

std::span<const Index> Interleaver::run(const GroupOrder& order,
                                        std::span<const Nanoseconds> durations,
                                        const MemoryLevel& soft, const MemoryLevel& hard) {
  durations_ = durations;
  soft_ = &soft;
  hard_ = &hard;
  begin(order);
  while (sequence_.size() < graph_->passes.size()) {
    const Index rank = earliest_rank();
    const Index pass = key_[rank] == kNever ? unblock() : pick(rank);
    if (pass != ReplicaGraph::kNone) {
      place(pass);
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
  std::ranges::fill(state_, RankState{});
  assign_slots(order);
  find_leaders(order);
  for (Index pass = 0; pass < graph_->passes.size(); ++pass) {
    if (clock_.complete(pass)) {
      release(pass);
    }
  }
}

void Interleaver::assign_slots(const GroupOrder& order) {
  // Counts up in `startable`, which stands at the first slot only here.
  const auto assign = [&](Direction direction, Index first, Index last, Index& priority) {
    for (Index pass = first; pass < last; ++pass) {
      Queue& of_rank = queue(graph_->passes[pass].rank, direction);
      const Index slot = of_rank.first + of_rank.startable++;
      slot_[pass] = slot;
      pass_at_[slot] = pass;
      priority_[slot] = priority++;
    }
  };
  Index forwards = 0;
  for (const Index group : order.forward) {
    assign(Forward, graph_->groups[group].first_forward, graph_->groups[group].last_forward,
           forwards);
  }
  Index backwards = 0;
  for (const Index group : order.backward) {
    assign(Backward, graph_->groups[group].first_backward, graph_->groups[group].last_backward,
           backwards);
  }
  for (Queue& each : queues_) {
    each.startable = 0;
  }
}

void Interleaver::find_leaders(const GroupOrder& order) {
  std::ranges::copy(component_size_, unfinished_.begin());
  std::ranges::fill(component_held_, 0);
  std::ranges::fill(listed_, std::uint8_t{0});
  leaders_.clear();
  leader_ = 0;
  for (const Index group : order.forward) {
    for (Index c = group_component_first_[group]; c < group_component_first_[group + 1]; ++c) {
      const Index component = group_component_[c];
      if (listed_[component] == 0) {
        listed_[component] = 1;
        leaders_.push_back(component);
      }
    }
  }
}

/// Queues a pass whose last input has become known.
void Interleaver::release(Index pass) {
  const Index rank = graph_->passes[pass].rank;
  const Direction direction = graph_->is_forward(pass) ? Forward : Backward;
  const Nanoseconds at = clock_.ready(pass);
  const Nanoseconds free = clock_.rank_free(rank);
  Queue& waiting = queue(rank, direction);
  if (at <= free) {
    make_startable(waiting, slot_[pass]);
  } else {
    add_arrival(waiting, at, slot_[pass]);
  }
  if (direction == Backward || !state_[rank].forward_off) {
    key_[rank] = std::min(key_[rank], std::max(free, at));
  }
}

Index Interleaver::earliest_rank() const {
  return static_cast<Index>(std::ranges::min_element(key_) - key_.begin());
}

/// The pass that the rank runs next, or none when memory has switched off its only queue.
Index Interleaver::pick(Index rank) {
  const Nanoseconds now = key_[rank];
  Queue& forward = queue(rank, Forward);
  Queue& backward = queue(rank, Backward);
  advance(forward, now);
  advance(backward, now);
  RankState& state = state_[rank];
  if (forward.startable > 0 && !state.forward_off &&
      (backward.startable == 0 || state.last == Backward)) {
    const Index slot = best_slot(forward);
    if (allowed(rank, graph_->passes[pass_at_[slot]].pair)) {
      return take(forward, slot);
    }
    state.forward_off = true;
  }
  if (backward.startable == 0) {
    update_key(rank);
    return ReplicaGraph::kNone;
  }
  return take(backward, best_slot(backward));
}

/// With every queue empty or off: the highest-priority forward that the hard level permits.
Index Interleaver::unblock() {
  Queue* best = nullptr;
  Index best_slot = 0;
  for (Index rank = 0; rank < key_.size(); ++rank) {
    Queue& forward = queue(rank, Forward);
    advance(forward, kNever - 1);
    for (Index slot = next_slot(forward, forward.first); slot < forward.last;
         slot = next_slot(forward, slot + 1)) {
      if (best != nullptr && priority_[slot] >= priority_[best_slot]) {
        break;
      }
      if (allowed_hard(rank, graph_->passes[pass_at_[slot]].pair)) {
        best = &forward;
        best_slot = slot;
        break;
      }
    }
  }
  if (best == nullptr) {
    fail_input("dip", "the passes of the task graph wait for each other in a cycle");
  }
  return take(*best, best_slot);
}

bool Interleaver::allowed_hard(Index rank, Index pair) const {
  const Index component = graph_->component[pair];
  const Index leader = leaders_[leader_];
  if (component == leader) {
    return true;
  }
  const ByteCount of_leader = component_held_[leader * key_.size() + rank];
  return state_[rank].hard_held - of_leader + hard_->held[pair] + hard_->largest[rank] <=
         hard_->room[rank];
}

bool Interleaver::allowed(Index rank, Index pair) const {
  return state_[rank].soft_held + soft_->held[pair] <= soft_->room[rank] &&
         allowed_hard(rank, pair);
}

void Interleaver::place(Index pass) {
  const Index rank = graph_->passes[pass].rank;
  clock_.run(pass, durations_[pass], [this](Index next) { release(next); });
  sequence_.push_back(pass);
  account(pass, rank);
  update_key(rank);
}

void Interleaver::account(Index pass, Index rank) {
  RankState& state = state_[rank];
  const Index pair = graph_->passes[pass].pair;
  const Index component = graph_->component[pair];
  const bool is_forward = graph_->is_forward(pass);
  const ByteCount sign = is_forward ? 1 : -1;
  state.soft_held += sign * soft_->held[pair];
  state.hard_held += sign * hard_->held[pair];
  component_held_[component * key_.size() + rank] += sign * hard_->held[pair];
  state.last = is_forward ? Forward : Backward;
  if (!is_forward) {
    state.forward_off = false;
  }
  if (--unfinished_[component] == 0 && component == leaders_[leader_]) {
    next_leader();
  }
}

/// The next leader may take what the last one has left: every forward queue is on again.
void Interleaver::next_leader() {
  while (leader_ < leaders_.size() && unfinished_[leaders_[leader_]] == 0) {
    ++leader_;
  }
  for (Index rank = 0; rank < key_.size(); ++rank) {
    if (state_[rank].forward_off) {
      state_[rank].forward_off = false;
      update_key(rank);
    }
  }
}

void Interleaver::update_key(Index rank) {
  const Nanoseconds free = clock_.rank_free(rank);
  const auto key_of = [&](const Queue& waiting) {
    if (waiting.startable > 0) {
      return free;
    }
    return waiting.arrivals < waiting.arrivals_end ? std::max(free, arrivals_[waiting.arrivals].at)
                                                   : kNever;
  };
  const Nanoseconds backward = key_of(queue(rank, Backward));
  key_[rank] =
      state_[rank].forward_off ? backward : std::min(backward, key_of(queue(rank, Forward)));
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
  while (waiting.arrivals < waiting.arrivals_end && arrivals_[waiting.arrivals].at <= now) {
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
