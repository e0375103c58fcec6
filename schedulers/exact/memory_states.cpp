// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/memory_states.hpp"

#include <algorithm>
#include <utility>

namespace dipsim::exact {

MemoryStates::MemoryStates(const Problem& problem)
    : problem_(problem), keys_(1024), answers_(1024) {
  for (Index p = 0; p < problem.passes.size(); ++p) {
    by_tail_.push_back(p);
  }
  std::ranges::stable_sort(
      by_tail_, [&](Index a, Index b) { return problem.passes[a].tail < problem.passes[b].tail; });
}

/// Its inputs are done, and its rank has room for it once all released fillers have run.
bool MemoryStates::fits_next(Mask done, Index pass) const {
  const Pass& next = problem_.passes[pass];
  if (has(done, pass) || (next.before & ~done) != 0) {
    return false;
  }
  const RankPasses& rank = problem_.ranks[next.rank];
  ByteCount held = 0;
  for_each(rank.passes & done, [&](Index p) { held += problem_.passes[p].change; });
  for_each(rank.fillers, [&](Index f) {
    held -= (problem_.fillers[f].before & ~done) == 0 ? problem_.fillers[f].frees : 0;
  });
  return held + next.needs <= rank.room;
}

std::size_t MemoryStates::place_of(Mask done) const {
  const std::size_t last = keys_.size() - 1;
  // Fibonacci hashing (Knuth, The Art of Computer Programming 3, §6.4).
  std::size_t place = static_cast<std::size_t>((done * 0x9E3779B97F4A7C15U) >> 20U) & last;
  while (answers_[place] != Answer::Unknown && keys_[place] != done) {
    place = (place + 1) & last;
  }
  return place;
}

void MemoryStates::remember(Mask done, Answer answer) {
  if (2 * stored_ >= keys_.size()) {
    std::vector<Mask> keys(2 * keys_.size());
    std::vector<Answer> answers(2 * keys_.size());
    std::swap(keys, keys_);
    std::swap(answers, answers_);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (answers[i] != Answer::Unknown) {
        const std::size_t place = place_of(keys[i]);
        keys_[place] = keys[i];
        answers_[place] = answers[i];
      }
    }
  }
  const std::size_t place = place_of(done);
  keys_[place] = done;
  answers_[place] = answer;
  ++stored_;
}

MemoryStates::Answer MemoryStates::look(Mask done) {
  if (done == problem_.all()) {
    return Answer::Alive;
  }
  if (const Answer known = answers_[place_of(done)]; known != Answer::Unknown || !certain()) {
    return known;
  }
  ++sets_;
  Answer found = Answer::Dead;
  for (const Index p : by_tail_) {
    if (!fits_next(done, p)) {
      continue;
    }
    const Answer then = look(done | bit(p));
    if (then == Answer::Alive) {
      found = then;
      break;
    }
    found = then == Answer::Unknown ? then : found;
  }
  if (found != Answer::Unknown) {
    remember(done, found);
  }
  return found;
}

std::vector<Index> MemoryStates::some_order() {
  std::vector<Index> order;
  Mask done = 0;
  while (look(done) == Answer::Alive && done != problem_.all()) {
    const auto next = std::ranges::find_if(by_tail_, [&](Index p) {
      return fits_next(done, p) && look(done | bit(p)) == Answer::Alive;
    });
    order.push_back(*next);
    done |= bit(*next);
  }
  return order;
}

}  // namespace dipsim::exact
