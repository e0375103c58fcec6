// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/safe_state.hpp"

#include <algorithm>

namespace dipsim::dip {

SafeState::SafeState(const ReplicaGraph& graph)
    : graph_(&graph),
      held_(graph.components * graph.ranks.size()),
      needed_(held_.size()),
      free_(graph.ranks.size()),
      begun_(graph.ranks.size()),
      has_begun_(graph.components),
      trial_free_(graph.ranks.size()) {
  active_.reserve(graph.components);
  waiting_.reserve(graph.components);
}

void SafeState::reset(const MemoryLevel& level) {
  level_ = &level;
  std::ranges::fill(held_, 0);
  std::ranges::copy(level.of_component, needed_.begin());
  std::ranges::copy(level.room, free_.begin());
  std::ranges::fill(begun_, 0);
  std::ranges::fill(has_begun_, std::uint8_t{0});
  active_.clear();
}

bool SafeState::permits(Index pair) const {
  const Index component = graph_->component[pair];
  return all_fit_with(component) || can_end_in_turn(graph_->passes[pair].rank, pair);
}

/// Whether there is room for all that have begun at once, and the component: the usual case.
bool SafeState::all_fit_with(Index component) const {
  for (Index rank = 0; rank < free_.size(); ++rank) {
    const ByteCount more = has_begun(component) ? 0 : level_->of_component[at(component, rank)];
    if (begun_[rank] + more + level_->most_working[rank] > level_->room[rank]) {
      return false;
    }
  }
  return true;
}

bool SafeState::can_end_in_turn(Index rank, Index pair) const {
  const Index component = graph_->component[pair];
  const ByteCount bytes = level_->pairs[pair].held;
  if (free_[rank] < bytes) {
    return false;
  }
  // The forward only moves bytes from what its component needs to what it holds.
  std::ranges::copy(free_, trial_free_.begin());
  trial_free_[rank] -= bytes;
  waiting_.assign(active_.begin(), active_.end());
  if (!has_begun(component)) {
    waiting_.push_back(component);
  }
  const auto shift = [&](Index other, Index r) {
    return other == component && r == rank ? bytes : 0;
  };
  for (bool ended = true; ended && !waiting_.empty();) {
    ended = false;
    for (std::size_t i = 0; i < waiting_.size();) {
      const Index other = waiting_[i];
      bool enough = true;
      for (Index r = 0; r < free_.size() && enough; ++r) {
        enough = needed_[at(other, r)] - shift(other, r) + level_->working[at(other, r)] <=
                 trial_free_[r];
      }
      if (!enough) {
        ++i;
        continue;
      }
      for (Index r = 0; r < free_.size(); ++r) {
        trial_free_[r] += held_[at(other, r)] + shift(other, r);
      }
      waiting_[i] = waiting_.back();
      waiting_.pop_back();
      ended = true;
    }
  }
  return waiting_.empty();
}

void SafeState::run_forward(Index pair) {
  const Index component = graph_->component[pair];
  const Index rank = graph_->passes[pair].rank;
  if (!has_begun(component)) {
    has_begun_[component] = 1;
    active_.push_back(component);
    for (Index r = 0; r < free_.size(); ++r) {
      begun_[r] += level_->of_component[at(component, r)];
    }
  }
  const ByteCount bytes = level_->pairs[pair].held;
  needed_[at(component, rank)] -= bytes;
  held_[at(component, rank)] += bytes;
  free_[rank] -= bytes;
}

void SafeState::run_backward(Index pair) {
  const Index rank = graph_->passes[pair].rank;
  held_[at(graph_->component[pair], rank)] -= level_->pairs[pair].held;
  free_[rank] += level_->pairs[pair].held;
}

void SafeState::end(Index component) {
  for (Index r = 0; r < free_.size(); ++r) {
    begun_[r] -= level_->of_component[at(component, r)];
  }
  const auto found = std::ranges::find(active_, component);
  *found = active_.back();
  active_.pop_back();
}

}  // namespace dipsim::dip
