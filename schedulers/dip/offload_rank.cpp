// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/offload_rank.hpp"

#include <algorithm>
#include <cstdint>

namespace dipsim::dip {

namespace {

constexpr Index kNone = ReplicaGraph::kNone;

/// Most turns of offloading what is kept and keeping what is recomputed.
constexpr int kTurns = 4;

}  // namespace

RankOffloader::RankOffloader(const ReplicaGraph& replica, std::span<const Index> sequence,
                             const OffloadTimer& timer, std::span<const Variant> variants,
                             const PlannedTimes& times)
    : graph_(replica), timer_(timer), variants_(variants), times_(times), places_(replica) {
  places_.find(sequence);
  slack_.reserve(2 * places_.most_positions() + 1);
}

bool RankOffloader::has_recomputation(Index rank, const Offloads& state) const {
  return std::ranges::any_of(places_.pairs_of(rank), [&](Index pair) {
    return variants_[pair].exists &&
           option(pair, state.choice[pair]).time() > option(pair, variants_[pair].twin).time();
  });
}

const PairOption& RankOffloader::option(Index pair, Index row) const {
  return graph_.options[graph_.first_option[pair] + row];
}

Nanoseconds RankOffloader::spared(Index pair, Index row) const {
  return option(pair, state_->choice[pair]).time() - option(pair, row).time();
}

bool RankOffloader::recomputes(Index pair) const {
  return variants_[pair].exists && spared(pair, variants_[pair].twin) > 0;
}

void RankOffloader::offload(Index rank, std::size_t divisor, Offloads& state) {
  state_ = &state;
  load(rank);
  for (int turn = 0; turn < kTurns; ++turn) {
    offload_kept(rank, divisor);
    if (!keep_recomputed(rank)) {
      break;
    }
  }
  take_back(rank);
}

// Memory is counted while passes run and between them: behind one pass bytes may have come back
// that leave room for those that go before the next one only once they are gone. So slot 2p + 1
// of a rank is the pass at position p, and slot 2p the time before it.

PairPlace RankOffloader::slots_of(Index pair) const {
  const PairPlace& place = places_[pair];
  return {
      .first = 2 * place.first + 1, .backward = 2 * place.backward + 1, .last = 2 * place.last + 1};
}

/// Least room while the pair would be away.
ByteCount RankOffloader::room_during(const Window& window) const {
  return slack_.least(2 * window.freed + 1, 2 * window.fetched + 2);
}

/// No pair of the rank offloads yet.
void RankOffloader::load(Index rank) {
  const std::span<const ByteCount> empty = places_.empty(rank);
  const std::size_t slots = 2 * empty.size() + 1;
  std::vector<ByteCount> change(slots + 1, 0);
  for (const Index pair : places_.pairs_of(rank)) {
    add_changes(change, slots_of(pair), bytes_of(option(pair, state_->choice[pair])));
  }
  ByteCount held = 0;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    held += change[slot];
    change[slot] = (slot % 2 == 0 ? graph_.room[rank] : empty[slot / 2]) - held;
  }
  slack_.assign(std::span(change).first(slots));
  out_.clear();
  in_.clear();
}

/// The pairs of a rank that `wanted` accepts, the greatest value first.
template <class Wanted, class Value>
std::vector<Index> RankOffloader::sorted_pairs(Index rank, Wanted wanted, Value value) const {
  std::vector<std::pair<decltype(value(Index{})), Index>> found;
  for (const Index pair : places_.pairs_of(rank)) {
    if (variants_[pair].exists && wanted(pair)) {
      found.emplace_back(value(pair), pair);
    }
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<Index> pairs;
  for (const auto& each : found) {
    pairs.push_back(each.second);
  }
  return pairs;
}

Nanoseconds RankOffloader::lifetime(Index pair) const {
  return times_.starts[graph_.backward[pair]] - times_.ends[pair];
}

/// Pairs that keep all, the longest-lived first: they free most for what they copy.
void RankOffloader::offload_kept(Index rank, std::size_t divisor) {
  const auto wanted = [&](Index p) { return !recomputes(p) && !state_->windows[p].away(); };
  const auto pairs = sorted_pairs(rank, wanted, [&](Index p) { return lifetime(p); });
  std::size_t left = (pairs.size() + divisor - 1) / divisor;
  for (const Index pair : pairs) {
    left -= left > 0 && try_offload(pair) ? 1U : 0U;
  }
}

/// Pairs that recompute, the most time per copied byte first: keep all where that fits now, else
/// offload, else recompute less. Whether any does.
bool RankOffloader::keep_recomputed(Index rank) {
  const auto value = [&](Index pair) {
    return static_cast<double>(spared(pair, variants_[pair].twin)) /
           static_cast<double>(variants_[pair].away);
  };
  bool changed = false;
  for (const Index pair : sorted_pairs(rank, [&](Index p) { return recomputes(p); }, value)) {
    changed =
        try_option(pair, variants_[pair].twin) || try_offload(pair) || try_faster(pair) || changed;
  }
  return changed;
}

bool RankOffloader::try_option(Index pair, Index row) {
  const PairBytes more = bytes_of(option(pair, row)) - bytes_of(option(pair, state_->choice[pair]));
  const PairPlace slots = slots_of(pair);
  if (!fits(more, room_for(slack_, slots, more.after > 0))) {
    return false;
  }
  take(slack_, slots, more);
  state_->choice[pair] = row;
  return true;
}

/// The fastest option that fits, with W where it was.
bool RankOffloader::try_faster(Index pair) {
  std::vector<Index> rows;
  for (Index row = 0; row < graph_.option_count[pair]; ++row) {
    if (spared(pair, row) > 0 &&
        same_weight(option(pair, row), option(pair, state_->choice[pair]))) {
      rows.push_back(row);
    }
  }
  std::ranges::sort(rows, {}, [&](Index row) { return option(pair, row).time(); });
  return std::ranges::any_of(rows, [&](Index row) { return try_option(pair, row); });
}

/// Moves the window of a pair; whether it is one.
bool RankOffloader::move(Index pair, Window window) {
  undo_.emplace_back(pair, state_->windows[pair]);
  shift(pair, window);
  return window.away() && window.fetched != kNone && places_[pair].first < window.freed &&
         window.freed <= window.fetched && window.fetched < places_[pair].backward;
}

/// Whether there is room wherever bytes came back by the moves.
bool RankOffloader::moves_fit() const {
  return std::ranges::all_of(undo_, [&](const auto& moved) {
    const Window& old = moved.second;
    return !old.away() || room_during(old) >= 0;
  });
}

void RankOffloader::shift(Index pair, Window window) {
  const auto give = [&](Window w, ByteCount bytes) {
    if (w.away() && w.fetched != kNone && w.freed <= w.fetched) {
      slack_.take(2 * w.freed + 1, 2 * w.fetched + 2, bytes);
    }
  };
  give(state_->windows[pair], variants_[pair].away);
  give(window, -variants_[pair].away);
  state_->windows[pair] = window;
}

/// Copies the pair out behind its F and in before its backward, and moves the copies of others
/// where need be; whether all of them stay hidden at the planned times and the memory suffices.
bool RankOffloader::try_offload(Index pair) {
  const PairPlace& place = places_[pair];
  const PairPlace slots = slots_of(pair);
  const Variant& variant = variants_[pair];
  CopyLane out = out_;
  CopyLane in = in_;
  const CopyRows later = add_copy_out(out, pair, place.first, times_.ends[pair], variant.out);
  const CopyRows earlier =
      add_copy_in(in, pair, place.backward, times_.starts[graph_.backward[pair]], variant.in);
  const PairBytes more =
      bytes_of(option(pair, variant.twin)) - bytes_of(option(pair, state_->choice[pair]));
  take(slack_, slots, more);
  undo_.clear();
  bool fine = true;
  Window own;
  for (std::size_t row = later.first; fine && row < later.last; ++row) {
    const Index freed = freed_before(out[row]);
    own.freed = out[row].pair == pair ? freed : own.freed;
    fine = out[row].pair == pair ||
           move(out[row].pair, {freed, state_->windows[out[row].pair].fetched});
  }
  for (std::size_t row = earlier.first; fine && row < earlier.last; ++row) {
    const Index fetched = fetched_after(in[row]);
    own.fetched = in[row].pair == pair ? fetched : own.fetched;
    fine =
        in[row].pair == pair || move(in[row].pair, {state_->windows[in[row].pair].freed, fetched});
  }
  fine = fine && move(pair, own) && moves_fit() && slack_.least(slots.first, slots.backward) >= 0 &&
         slack_.at(slots.backward) >= 0;
  if (fine) {
    state_->choice[pair] = variant.twin;
    out_ = std::move(out);
    in_ = std::move(in);
    return true;
  }
  for (; !undo_.empty(); undo_.pop_back()) {
    shift(undo_.back().first, undo_.back().second);
  }
  take(slack_, slots, PairBytes{} - more);
  return false;
}

/// Position of the first pass that starts once the copy out has ended; kNone: there is none.
Index RankOffloader::freed_before(const PlannedCopy& copy) const {
  const auto order = timer_.order(graph_.passes[copy.pair].rank);
  const auto found =
      std::partition_point(order.begin() + copy.position + 1, order.end(),
                           [&](Index pass) { return times_.starts[pass] < copy.end; });
  return found == order.end() ? kNone : static_cast<Index>(found - order.begin());
}

/// Position of the last pass that has ended when the copy in starts; kNone: there is none.
Index RankOffloader::fetched_after(const PlannedCopy& copy) const {
  const auto order = timer_.order(graph_.passes[copy.pair].rank);
  const auto found =
      std::partition_point(order.begin(), order.begin() + copy.position,
                           [&](Index pass) { return times_.ends[pass] <= copy.start; });
  return found == order.begin() ? kNone : static_cast<Index>(found - order.begin() - 1);
}

/// What has room on the GPU stays there, the shortest windows first.
void RankOffloader::take_back(Index rank) {
  const auto length = [&](Index p) {
    return -static_cast<std::int64_t>(state_->windows[p].fetched - state_->windows[p].freed);
  };
  for (const Index pair :
       sorted_pairs(rank, [&](Index p) { return state_->windows[p].away(); }, length)) {
    const Window window = state_->windows[pair];
    if (room_during(window) >= variants_[pair].away) {
      shift(pair, {});
    }
  }
}

}  // namespace dipsim::dip
