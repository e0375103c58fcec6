// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/pass_order.hpp"

#include "schedulers/dip/held.hpp"
#include "schedulers/dip/memory_level.hpp"

#include <algorithm>

namespace dipsim::dip {

PassOrder::PassOrder(const ReplicaGraph& replica)
    : graph_(&replica),
      clock_(replica),
      rank_first_(replica.ranks.size() + 1, 0),
      first_before_(replica.passes.size() + 1, 0),
      before_(replica.hops.size()),
      choice_(replica.pair_count()),
      duration_(replica.passes.size()),
      sequence_(replica.passes.size()),
      in_sequence_(replica.passes.size()),
      order_(replica.passes.size()),
      place_(replica.passes.size()),
      held_(replica.passes.size()),
      beyond_(replica.passes.size(), 0),
      start_(replica.passes.size()),
      tail_(replica.passes.size()),
      hop_tail_(replica.passes.size()),
      waited_for_(replica.passes.size()),
      link_busy_since_(replica.links),
      rank_tail_(replica.ranks.size()),
      marked_(replica.passes.size(), 0),
      rank_marked_(replica.ranks.size(), 0) {
  path_.reserve(replica.passes.size());
  moved_.reserve(replica.passes.size());
  for (const Pass& pass : replica.passes) {
    ++rank_first_[pass.rank + 1];
  }
  for (std::size_t rank = 1; rank < rank_first_.size(); ++rank) {
    rank_first_[rank] += rank_first_[rank - 1];
  }
  for (const Hop& hop : replica.hops) {
    ++first_before_[hop.to + 1];
  }
  for (std::size_t pass = 1; pass < first_before_.size(); ++pass) {
    first_before_[pass] += first_before_[pass - 1];
  }
  std::vector<Index> filled(first_before_.begin(), first_before_.end() - 1);
  for (Index pass = 0; pass < replica.passes.size(); ++pass) {
    for (Index h = replica.passes[pass].first_hop; h < replica.passes[pass].last_hop; ++h) {
      before_[filled[replica.hops[h].to]++] = pass;
    }
  }
}

void PassOrder::assign(std::span<const Index> sequence, std::span<const Index> choice) {
  std::ranges::copy(choice, choice_.begin());
  set_durations(*graph_, choice, duration_);
  reorder(sequence);
}

void PassOrder::reorder(std::span<const Index> sequence) {
  std::ranges::copy(sequence, sequence_.begin());
  std::vector<Index>& next = moved_;
  next.assign(rank_first_.begin(), rank_first_.end() - 1);
  for (Index i = 0; i < sequence_.size(); ++i) {
    const Index pass = sequence_[i];
    in_sequence_[pass] = i;
    place_[pass] = next[graph_->passes[pass].rank]++;
    order_[place_[pass]] = pass;
  }
  for (Index rank = 0; rank < graph_->ranks.size(); ++rank) {
    set_held(rank);
  }
  time_forward();
  time_backward();
}

void PassOrder::set_held(Index rank) {
  ByteCount held = 0;
  for (Index place = rank_first_[rank]; place < rank_first_[rank + 1]; ++place) {
    const Index pass = order_[place];
    const ByteCount beyond = beyond_room(pass, held);
    excess_ += beyond - beyond_[place];
    held_[place] = held;
    beyond_[place] = beyond;
    held += held_change(*graph_, pass, option(pass));
  }
}

ByteCount PassOrder::beyond_room(Index pass, ByteCount held) const {
  const ByteCount needed = held + needed_bytes(*graph_, pass, option(pass));
  return std::max<ByteCount>(0, needed - graph_->room[graph_->passes[pass].rank]);
}

void PassOrder::time_forward() {
  clock_.reset();
  std::ranges::fill(waited_for_, kNone);
  for (const Index id : sequence_) {
    Index origin = id;
    clock_.run(id, duration_[id], [&](const Hop& hop, Nanoseconds arrival, bool queued) {
      if (hop.link == Hop::kDirect) {
        origin = id;
      } else if (hop.link != Hop::kShared) {
        Index& busy_since = link_busy_since_[hop.link];
        busy_since = queued ? busy_since : id;
        origin = busy_since;
      }
      if (arrival == clock_.ready(hop.to)) {
        waited_for_[hop.to] = origin;
      }
    });
    start_[id] = clock_.rank_free(graph_->passes[id].rank) - duration_[id];
  }
}

void PassOrder::time_backward() {
  std::ranges::fill(rank_tail_, 0);
  for (std::size_t i = sequence_.size(); i-- > 0;) {
    const Index id = sequence_[i];
    const Pass& pass = graph_->passes[id];
    Nanoseconds by_hops = 0;
    Nanoseconds lag = 0;
    for (Index h = pass.first_hop; h < pass.last_hop; ++h) {
      const Hop& hop = graph_->hops[h];
      if (hop.link == Hop::kDirect) {
        lag = 0;
      } else if (hop.link != Hop::kShared) {
        lag = hop.occupied + hop.latency;
      }
      by_hops = std::max(by_hops, lag + duration_[hop.to] + tail_[hop.to]);
    }
    hop_tail_[id] = by_hops;
    tail_[id] = std::max(by_hops, rank_tail_[pass.rank]);
    rank_tail_[pass.rank] = duration_[id] + tail_[id];
  }
}

std::span<const Index> PassOrder::critical_path(std::uint64_t salt) {
  path_.clear();
  Index at = kNone;
  for (Index rank = 0; rank < graph_->ranks.size(); ++rank) {
    if (rank_first_[rank] == rank_first_[rank + 1]) {
      continue;
    }
    const Index end = order_[rank_first_[rank + 1] - 1];
    if (start_[end] + duration_[end] == clock_.last_end() &&
        (at == kNone || (salt >> (rank % 64) & 1) != 0)) {
      at = end;
    }
  }
  while (at != kNone) {
    path_.push_back(at);
    const Index before = previous(at);
    const bool by_rank = before != kNone && start_[before] + duration_[before] == start_[at];
    const bool by_input = waited_for_[at] != kNone && clock_.ready(at) == start_[at];
    const bool choose_rank = !by_input || (salt >> (path_.size() % 64) & 1) != 0;
    if (by_rank && choose_rank) {
      at = before;
    } else {
      at = by_input ? waited_for_[at] : kNone;
    }
  }
  return path_;
}

ByteCount PassOrder::excess_after(const Move& move) const {
  const Index from = place_[move.later ? move.pass : move.target];
  const Index to = place_[move.later ? move.target : move.pass];
  ByteCount held = held_[from];
  ByteCount change = 0;
  const auto run = [&](Index pass) {
    change += beyond_room(pass, held);
    held += held_change(*graph_, pass, option(pass));
  };
  if (!move.later) {
    run(move.pass);
  }
  for (Index place = from; place <= to; ++place) {
    change -= beyond_[place];
    if (order_[place] != move.pass) {
      run(order_[place]);
    }
  }
  if (move.later) {
    run(move.pass);
  }
  return excess_ + change;
}

Nanoseconds PassOrder::estimate(const Move& move) const {
  // The shifted passes in their new order: [first, last] without the moved one, which stands
  // behind or before them.
  const Index from = place_[move.later ? move.pass : move.target];
  const Index to = place_[move.later ? move.target : move.pass];
  const Index first = move.later ? from + 1 : from;
  const Index last = move.later ? to : to - 1;
  const Index before = previous(order_[from]);
  const Index after = next(order_[to]);
  const Nanoseconds tail_after = after == kNone ? 0 : duration_[after] + tail_[after];

  Nanoseconds longest = 0;
  // Tails from the back; heads need a pass from the front, so tails are kept on the way: the
  // longest path through the shifted passes is max over passes of head + duration + tail, and its
  // part behind a pass is either the hops of that pass or the next pass.
  Nanoseconds head = before == kNone ? 0 : start_[before] + duration_[before];
  const auto run = [&](Index pass) {
    head = std::max(head, clock_.ready(pass)) + duration_[pass];
    longest = std::max(longest, head + hop_tail_[pass]);
  };
  if (!move.later) {
    run(move.pass);
  }
  for (Index place = first; place <= last; ++place) {
    run(order_[place]);
  }
  if (move.later) {
    run(move.pass);
  }
  return std::max(longest, head + tail_after) - clock_.first_start();
}

bool PassOrder::apply(const Move& move) {
  const Index first = in_sequence_[move.later ? move.pass : move.target];
  const Index last = in_sequence_[move.later ? move.target : move.pass];
  if (!(move.later ? shift_later(move, first, last) : shift_earlier(move, first, last))) {
    return false;
  }
  for (Index i = first; i <= last; ++i) {
    in_sequence_[sequence_[i]] = i;
  }
  shift_on_rank(move);
  set_held(graph_->passes[move.pass].rank);
  time_forward();
  time_backward();
  return true;
}

/// Takes what waits for the pass, directly or through ranks, out of [first, last] and puts it
/// behind, the pass first.
bool PassOrder::shift_later(const Move& move, Index first, Index last) {
  const Index own = graph_->passes[move.pass].rank;
  moved_.clear();
  marked_[move.pass] = 1;
  bool possible = true;
  for (Index i = first; i <= last && possible; ++i) {
    const Index id = sequence_[i];
    const Pass& pass = graph_->passes[id];
    if (marked_[id] == 0 && (pass.rank == own || rank_marked_[pass.rank] == 0)) {
      continue;
    }
    possible = i == first || pass.rank != own;
    marked_[id] = 1;
    moved_.push_back(id);
    rank_marked_[pass.rank] = 1;
    for (Index h = pass.first_hop; h < pass.last_hop; ++h) {
      marked_[graph_->hops[h].to] = 1;
    }
  }
  if (possible) {
    Index kept = first;
    for (Index i = first; i <= last; ++i) {
      if (marked_[sequence_[i]] == 0) {
        sequence_[kept++] = sequence_[i];
      }
    }
    std::ranges::copy(moved_, sequence_.begin() + kept);
  }
  for (const Index id : moved_) {
    marked_[id] = 0;
    rank_marked_[graph_->passes[id].rank] = 0;
    for (Index h = graph_->passes[id].first_hop; h < graph_->passes[id].last_hop; ++h) {
      marked_[graph_->hops[h].to] = 0;
    }
  }
  marked_[move.pass] = 0;
  return possible;
}

/// The mirror image: what the pass waits for goes before, the pass behind it.
bool PassOrder::shift_earlier(const Move& move, Index first, Index last) {
  const Index own = graph_->passes[move.pass].rank;
  moved_.clear();
  marked_[move.pass] = 1;
  bool possible = true;
  for (Index i = last + 1; i-- > first && possible;) {
    const Index id = sequence_[i];
    const Pass& pass = graph_->passes[id];
    if (marked_[id] == 0 && (pass.rank == own || rank_marked_[pass.rank] == 0)) {
      continue;
    }
    possible = i == last || pass.rank != own;
    marked_[id] = 1;
    moved_.push_back(id);
    rank_marked_[pass.rank] = 1;
    for (Index b = first_before_[id]; b < first_before_[id + 1]; ++b) {
      marked_[before_[b]] = 1;
    }
  }
  if (possible) {
    Index kept = last + 1;
    for (Index i = last + 1; i-- > first;) {
      if (marked_[sequence_[i]] == 0) {
        sequence_[--kept] = sequence_[i];
      }
    }
    std::ranges::copy(moved_, std::make_reverse_iterator(sequence_.begin() + kept));
  }
  for (const Index id : moved_) {
    marked_[id] = 0;
    rank_marked_[graph_->passes[id].rank] = 0;
    for (Index b = first_before_[id]; b < first_before_[id + 1]; ++b) {
      marked_[before_[b]] = 0;
    }
  }
  marked_[move.pass] = 0;
  return possible;
}

void PassOrder::shift_on_rank(const Move& move) {
  const Index from = place_[move.later ? move.pass : move.target];
  const Index to = place_[move.later ? move.target : move.pass];
  const auto begin = order_.begin();
  if (move.later) {
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  } else {
    std::rotate(begin + from, begin + to, begin + to + 1);
  }
  for (Index place = from; place <= to; ++place) {
    place_[order_[place]] = place;
  }
}

}  // namespace dipsim::dip
