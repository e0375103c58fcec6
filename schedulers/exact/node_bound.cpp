// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/node_bound.hpp"

#include <algorithm>
#include <limits>

namespace dipsim::exact {

namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

}  // namespace

Nanoseconds NodeBound::raise(State& state, Nanoseconds least, Nanoseconds cutoff) {
  left_ = problem_.all() & ~state.done;
  Nanoseconds bound = std::max(least, longest_path(state));
  for (Index r = 0; r < problem_.ranks.size() && bound < cutoff; ++r) {
    const RankPasses& rank = problem_.ranks[r];
    raise_rank(state, r, least);
    sort_by_start(state, left_ & rank.passes);
    bound = std::max(bound, load(state, rank, state.rank_free[r]));
    if (count_ > 0 && bound < cutoff) {
      bound = std::max(bound, preemptive(state, rank));
    }
  }
  return bound;
}

/// Passes are numbered along the edges, so each finds the starts of its inputs known.
Nanoseconds NodeBound::longest_path(State& state) {
  Nanoseconds longest = 0;
  std::fill_n(rank_start_.begin(), problem_.ranks.size(), kNever);
  for_each(left_, [&](Index p) {
    const Pass& pass = problem_.passes[p];
    Nanoseconds start = std::max({state.arrival[p], state.rank_free[pass.rank], state.now});
    for (const Input& input : problem_.inputs[p]) {
      if (has(left_, input.from)) {
        start = std::max(
            start, state.earliest[input.from] + problem_.passes[input.from].time + input.delay);
      }
    }
    state.earliest[p] = start;
    rank_start_[pass.rank] = std::min(rank_start_[pass.rank], start);
    longest = std::max(longest, start + pass.time + pass.tail);
  });
  return longest;
}

/// A rank without a filler to run is idle until its next pass; one that has nothing left may as
/// well be busy for as long as any order takes.
void NodeBound::raise_rank(State& state, Index rank, Nanoseconds least) const {
  const Mask fillers = problem_.ranks[rank].fillers & ~state.fillers;
  if ((fillers & state.released) != 0) {
    return;
  }
  Nanoseconds& free = state.rank_free[rank];
  if (rank_start_[rank] != kNever) {
    free = std::max(free, rank_start_[rank]);
  } else if (fillers == 0) {
    free = std::max(free, least);
  }
}

/// The passes come along the edges, so they are nearly sorted.
void NodeBound::sort_by_start(const State& state, Mask passes) {
  count_ = 0;
  for_each(passes, [&](Index p) {
    std::size_t at = count_++;
    for (; at > 0 && state.earliest[sorted_[at - 1]] > state.earliest[p]; --at) {
      sorted_[at] = sorted_[at - 1];
    }
    sorted_[at] = p;
  });
}

Nanoseconds NodeBound::load(const State& state, const RankPasses& rank, Nanoseconds free) {
  Nanoseconds end = free;
  std::size_t fillers = 0;
  for_each(rank.fillers & ~state.fillers, [&](Index f) {
    const Filler& filler = problem_.fillers[f];
    if (has(state.released, f)) {
      end += filler.time;
      return;
    }
    Nanoseconds ready = 0;
    for_each(filler.before & left_, [&](Index p) {
      ready = std::max(ready, state.earliest[p] + problem_.passes[p].time);
    });
    std::size_t at = fillers++;
    for (; at > 0 && filler_start_[at - 1] > ready; --at) {
      filler_start_[at] = filler_start_[at - 1];
      filler_time_[at] = filler_time_[at - 1];
    }
    filler_start_[at] = ready;
    filler_time_[at] = filler.time;
  });
  std::size_t f = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const Index p = sorted_[i];
    for (; f < fillers && filler_start_[f] < state.earliest[p]; ++f) {
      end = std::max(end, filler_start_[f]) + filler_time_[f];
    }
    end = std::max(end, state.earliest[p]) + problem_.passes[p].time;
  }
  for (; f < fillers; ++f) {
    end = std::max(end, filler_start_[f]) + filler_time_[f];
  }
  return end;
}

Nanoseconds NodeBound::preemptive(const State& state, const RankPasses& rank) {
  Mask available = 0;  // places
  Nanoseconds longest = 0;
  Nanoseconds now = 0;
  for (std::size_t next = 0; next < count_ || available != 0;) {
    if (available == 0) {
      now = std::max(now, state.earliest[sorted_[next]]);
    }
    for (; next < count_ && state.earliest[sorted_[next]] <= now; ++next) {
      const Index place = problem_.place_by_tail[sorted_[next]];
      work_left_[place] = problem_.passes[sorted_[next]].time;
      available |= bit(place);
    }
    const Index place = first_of(available);
    const Nanoseconds until = next < count_ ? state.earliest[sorted_[next]] : kNever;
    if (work_left_[place] <= until - now) {
      now += work_left_[place];
      available &= available - 1;
      longest = std::max(longest, now + problem_.passes[rank.by_tail[place]].tail);
    } else {
      work_left_[place] -= until - now;
      now = until;
    }
  }
  return longest;
}

}  // namespace dipsim::exact
