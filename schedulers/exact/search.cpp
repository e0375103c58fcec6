// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/search.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace dipsim::exact {

Search::Search(const Problem& problem, MemoryStates& memory, Nanoseconds least, Nanoseconds best)
    : problem_(problem),
      memory_(memory),
      bound_(problem),
      dominance_(problem),
      least_(least),
      best_(best),
      traces_(problem.passes.size() + 1),
      held_by_passes_(problem.ranks.size()),
      parent_(problem),
      child_(problem) {}

bool Search::run(std::size_t width, const SearchLimits& limits) {
  limits_ = limits;
  start();
  for (std::size_t length = 0; length < problem_.passes.size(); ++length) {
    if (!next_layer(width)) {
      return false;
    }
    std::vector<Trace>& trace = traces_[length + 1];
    trace.clear();
    for (const Node& node : layer_.nodes) {
      trace.push_back({.parent = node.parent, .pass = node.pass, .fillers = node.fillers});
    }
  }
  finish();
  return true;
}

/// The layer with the empty order.
void Search::start() {
  dropped_ = std::numeric_limits<Nanoseconds>::max();
  child_ = State(problem_);
  child_.released = released_fillers(problem_, 0);
  least_ = std::max(least_, bound_.raise(child_, least_, best_));
  layer_.clear();
  next_.clear();
  waiting_ = 0;
  keep_child({.bound = least_});
  std::swap(layer_, next_);
}

bool Search::stopped(bool look_at_clock) const {
  return nodes_ >= limits_.nodes ||
         (look_at_clock && limits_.until && std::chrono::steady_clock::now() >= *limits_.until);
}

/// From layer_ to the next one.
bool Search::next_layer(std::size_t width) {
  next_.clear();
  for (Index number = 0; number < layer_.nodes.size(); ++number) {
    const Node& node = layer_.nodes[number];
    if (number == 0 || layer_.nodes[number - 1].done != node.done) {
      open_set(node.done);
    }
    unpack(node);
    for_each(ready_, [&](Index pass) { append(pass, number); });
    if (next_.nodes.size() >= 4 * width + 4096) {
      shorten(2 * width);
    }
    if (stopped(number % 256 == 0)) {
      return false;
    }
  }
  shorten(width);
  std::swap(layer_, next_);
  return true;
}

void Search::shorten(std::size_t width) {
  dominance_.filter(next_, best_);
  dropped_ = std::min(dropped_, narrow(next_, width));
}

/// What all nodes with this set have in common.
void Search::open_set(Mask done) {
  waiting_ = waiting(problem_, done);
  tight_ = tight_ranks(problem_, done);
  parent_.done = done;
  parent_.released = released_fillers(problem_, done);
  parent_.arrival.fill(0);
  ready_ = 0;
  std::ranges::fill(held_by_passes_, 0);
  for (Index p = 0; p < problem_.passes.size(); ++p) {
    const Pass& pass = problem_.passes[p];
    if (has(done, p)) {
      held_by_passes_[pass.rank] += pass.change;
    } else if ((pass.before & ~done) == 0) {
      ready_ |= bit(p);
    }
  }
}

void Search::unpack(const Node& node) {
  parent_.fillers = node.fillers;
  const Nanoseconds* time = layer_.times_of(node);
  for (Nanoseconds& free : parent_.rank_free) {
    free = *time++;
  }
  parent_.now = *time++;
  for (Nanoseconds& free : parent_.link_free) {
    free = *time++;
  }
  for_each(waiting_, [&](Index p) { parent_.arrival[p] = *time++; });
}

/// The children that run this pass next.
void Search::append(Index pass, Index number) {
  const Pass& next = problem_.passes[pass];
  const RankPasses& rank = problem_.ranks[next.rank];
  const Mask undone = rank.fillers & ~parent_.fillers;
  turn_ = {.pass = pass,
           .parent = number,
           .free = parent_.rank_free[next.rank],
           .ready = std::max(parent_.arrival[pass], parent_.now),
           .fillers = undone & parent_.released};
  turn_.tight = has(tight_, next.rank);
  if (turn_.tight) {
    turn_.held = held_by_passes_[next.rank];
    for_each(rank.fillers & parent_.fillers,
             [&](Index f) { turn_.held -= problem_.fillers[f].frees; });
  }
  if (!memory_.dead(parent_.done | bit(pass))) {
    add_children(turn_.fillers, {});
  }
}

/// The child that runs `run` before the pass, and those that also run some of `candidates`. Fillers
/// stand in descending order of time, so the one added last is the shortest of a run.
void Search::add_children(Mask candidates, const Run& run) {
  add_child(run);
  const bool in_time = turn_.free + run.time < turn_.ready;
  if ((!in_time && !turn_.tight) || nodes_ >= limits_.nodes) {
    return;  // rule 5
  }
  for (Mask left = candidates; left != 0;) {
    const Index f = first_of(left);
    left &= left - 1;
    const Filler& filler = problem_.fillers[f];
    add_children(left, {.fillers = run.fillers | bit(f),
                        .time = run.time + filler.time,
                        .frees = run.frees + filler.frees});
  }
}

void Search::add_child(const Run& run) {
  ++nodes_;
  const Pass& pass = problem_.passes[turn_.pass];
  const Nanoseconds free = turn_.free + run.time;
  const Nanoseconds start = std::max(free, turn_.ready);
  if (start + pass.time + pass.tail >= best_ ||
      (turn_.tight && turn_.held - run.frees + pass.needs > problem_.ranks[pass.rank].room)) {
    return;
  }
  bool idle_for_filler = false;  // rule 4
  for_each(turn_.fillers & ~run.fillers,
           [&](Index f) { idle_for_filler |= free + problem_.fillers[f].time <= start; });
  if (idle_for_filler) {
    return;
  }
  apply(run, start);
  const Nanoseconds bound =
      std::max(layer_.nodes[turn_.parent].bound, bound_.raise(child_, least_, best_));
  if (bound < best_) {
    keep_child({.bound = bound, .parent = turn_.parent, .pass = turn_.pass});
  }
}

void Search::apply(const Run& run, Nanoseconds start) {
  const Pass& pass = problem_.passes[turn_.pass];
  child_ = parent_;
  child_.done |= bit(turn_.pass);
  child_.fillers |= run.fillers;
  for_each(problem_.ranks[pass.rank].fillers & ~child_.released, [&](Index f) {
    child_.released |= (problem_.fillers[f].before & ~child_.done) == 0 ? bit(f) : 0;
  });
  child_.now = start;
  const Nanoseconds end = start + pass.time;
  child_.rank_free[pass.rank] = end;
  Nanoseconds arrival = end;
  for (const Delivery& delivery : problem_.deliveries[turn_.pass]) {
    if (!delivery.repeated) {
      Nanoseconds leaves = end;
      if (delivery.link != kNone) {
        Nanoseconds& free = child_.link_free[delivery.link];
        leaves = std::max(end, free);
        free = leaves + delivery.occupied;
      }
      arrival = leaves + delivery.occupied + delivery.latency;
    }
    if (delivery.target != kNone) {
      Nanoseconds& known = child_.arrival[delivery.target];
      known = std::max(known, arrival);
    }
  }
}

/// A link is as good as busy until its sender can end another pass.
void Search::keep_child(Node node) {
  node.done = child_.done;
  node.fillers = child_.fillers;
  packed_.assign(child_.rank_free.begin(), child_.rank_free.end());
  packed_.push_back(child_.now);
  for (std::size_t link = 0; link < child_.link_free.size(); ++link) {
    packed_.push_back(
        std::max(child_.link_free[link], child_.rank_free[problem_.link_sender[link]]));
  }
  const Mask fed = node.pass == kNone ? 0 : problem_.passes[node.pass].feeds;
  for_each((waiting_ | fed) & ~child_.done,
           [&](Index p) { packed_.push_back(child_.earliest[p]); });
  node.sum = 0;
  for (const Nanoseconds time : packed_) {
    node.sum += time;
  }
  next_.add(node, packed_);
}

/// Takes over the best leaf, if there is one.
void Search::finish() {
  const auto leaf = std::ranges::min_element(layer_.nodes, {}, &Node::bound);
  if (leaf != layer_.nodes.end() && leaf->bound < best_) {
    best_ = leaf->bound;
    steps_.resize(problem_.passes.size());
    auto row = static_cast<std::size_t>(leaf - layer_.nodes.begin());
    for (std::size_t length = steps_.size(); length > 0; --length) {
      const Trace& trace = traces_[length][row];
      row = trace.parent;
      const Mask before = length > 1 ? traces_[length - 1][row].fillers : 0;
      steps_[length - 1] = {.pass = trace.pass, .fillers = trace.fillers & ~before};
    }
  }
  least_ = std::max(least_, std::min(best_, dropped_));
}

}  // namespace dipsim::exact
