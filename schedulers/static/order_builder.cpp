// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/order_builder.hpp"

#include "schedulers/static/pipeline_memory.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <utility>

namespace dipsim {

namespace {

[[noreturn]] void fail_too_large(RankId rank, int microbatch, Bytes needed, Bytes limit) {
  fail_infeasible(
      fmt::format("rank {}", rank.value),
      fmt::format("microbatch {} alone needs {} bytes ({:.2f} GiB) for activations, but {} bytes "
                  "({:.2f} GiB) are left beside weights, gradients, optimizer state and reserve",
                  microbatch, needed.count, to_gib(needed), limit.count, to_gib(limit)));
}

}  // namespace

OrderBuilder::OrderBuilder(const PipelineInstance& instance, std::span<const Bytes> limits)
    : instance_(instance),
      microbatches_(static_cast<std::size_t>(instance.shape.microbatches)),
      facts_(static_cast<std::size_t>(instance.shape.ranks)),
      stages_(instance.stages.size()),
      ranks_(facts_.size()),
      steps_(facts_.size()) {
  add_links();
  std::vector<std::vector<int>> stages = stages_of_ranks(instance);
  needs_.reserve(facts_.size() * microbatches_ * passes_per_microbatch());
  for (std::size_t rank = 0; rank < facts_.size(); ++rank) {
    facts_[rank].limit = limits[rank];
    facts_[rank].stages = std::move(stages[rank]);
    add_facts(rank);
  }
  clear();
}

void OrderBuilder::add_links() {
  const auto ranks = static_cast<std::size_t>(instance_.shape.ranks);
  std::vector<int> link_ids(ranks * ranks, kNone);
  int links = 0;
  const auto link = [&](const StageShape& from, const StageShape& to) {
    if (from.rank == to.rank) {
      return kNone;
    }
    int& id =
        link_ids[static_cast<std::size_t>(from.rank) * ranks + static_cast<std::size_t>(to.rank)];
    if (id == kNone) {
      id = links++;
    }
    return id;
  };
  int upstream = kNone;  // nearest stage before that has a backward
  for (int s = 0; s < instance_.stage_count(); ++s) {
    StageState& stage = stage_at(s);
    stage.shape = instance_.stage(s);
    if (s > 0) {
      stage_at(s - 1).forward_link = link(instance_.stage(s - 1), stage.shape);
    }
    if (stage.shape.has_backward) {
      stage.gradient_to = upstream;
      if (upstream != kNone) {
        stage.backward_link = link(stage.shape, instance_.stage(upstream));
      }
      upstream = s;
    }
  }
  last_backward_ = upstream;
  link_free_.resize(static_cast<std::size_t>(links));
}

void OrderBuilder::add_facts(std::size_t rank) {
  RankFacts& facts = facts_[rank];
  for (const int stage : facts.stages) {
    for (int m = 0; m < instance_.shape.microbatches; ++m) {
      const PairCost& cost = instance_.cost(stage, m);
      facts.load += cost.forward + cost.backward + cost.weight;
      facts.most_during_weight = std::max(facts.most_during_weight, cost.during_weight);
    }
  }
  for (int m = 0; m < instance_.shape.microbatches; ++m) {
    append_needs(instance_, facts.stages, m, needs_);
    const Bytes alone = *(needs_.end() - static_cast<std::ptrdiff_t>(passes_per_microbatch()));
    if (alone > facts.limit) {
      fail_too_large(instance_.ranks[rank], m, alone, facts.limit);
    }
    facts.most_needed = std::max(facts.most_needed, alone);
  }
}

void OrderBuilder::clear() {
  const std::size_t rows = stages_.size() * microbatches_;
  forward_arrivals_.assign(rows, kNever);
  backward_arrivals_.assign(rows, kNever);
  std::fill_n(forward_arrivals_.begin(), microbatches_, Duration{0});
  if (last_backward_ != kNone) {  // its input is its own forward
    const auto row = static_cast<std::ptrdiff_t>(instance_.row(last_backward_, 0));
    std::fill_n(backward_arrivals_.begin() + row, microbatches_, Duration{0});
  }
  active_.assign(ranks_.size() * microbatches_, Bytes{});
  passes_done_.assign(ranks_.size() * microbatches_, 0);
  std::ranges::fill(link_free_, Duration{0});
  for (StageState& stage : stages_) {
    stage.forwards = 0;
    stage.backwards = 0;
  }
  longest_span_ = Duration{0};
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankState& rank = ranks_[r];
    rank.weights.clear();
    rank = {.span = facts_[r].load, .weights = std::move(rank.weights)};
    longest_span_ = std::max(longest_span_, rank.span);
    steps_[r].clear();
  }
}

Duration OrderBuilder::forward_arrival(int stage) const {
  const int microbatch = forwards(stage);
  return microbatch < instance_.shape.microbatches
             ? forward_arrivals_[instance_.row(stage, microbatch)]
             : kNever;
}

Duration OrderBuilder::backward_arrival(int stage) const {
  const StageState& state = stage_at(stage);
  return state.shape.has_backward && state.backwards < state.forwards
             ? backward_arrivals_[instance_.row(stage, state.backwards)]
             : kNever;
}

/// Runs a pass; returns its end.
Duration OrderBuilder::run(RankState& rank, Duration arrival, Duration time) {
  DIPSIM_CHECK(arrival != kNever, "a pass was placed before its input");
  if (arrival > rank.now) {
    if (rank.started) {
      rank.span += arrival - rank.now;
      longest_span_ = std::max(longest_span_, rank.span);
    }
    rank.now = arrival;
  }
  rank.started = true;
  rank.now += time;
  return rank.now;
}

/// Returns when a message arrives that is sent at `end`.
Duration OrderBuilder::send(int link, Duration end, const HopCost& hop) {
  if (link == kNone) {
    return end;
  }
  Duration& free = link_free_[static_cast<std::size_t>(link)];
  free = std::max(end, free) + hop.occupied;
  return free + hop.latency;
}

void OrderBuilder::place_forward(int stage) {
  StageState& state = stage_at(stage);
  RankState& rank = rank_at(state.shape.rank);
  const Duration arrival = forward_arrival(stage);
  const int microbatch = state.forwards++;
  const PairCost& cost = instance_.cost(stage, microbatch);
  const Duration end = run(rank, arrival, cost.forward);
  if (stage + 1 < instance_.stage_count()) {
    forward_arrivals_[instance_.row(stage + 1, microbatch)] =
        send(state.forward_link, end, cost.sent);
  }
  rank.active += cost.held;
  const std::size_t row = of_rank(state.shape.rank, microbatch);
  active_[row] += cost.held;
  ++passes_done_[row];
  steps_of(state).push_back({.op = Op::F, .chunk = state.shape.chunk, .microbatch = microbatch});
  finish_microbatches(state.shape.rank);
}

void OrderBuilder::place_backward(int stage) {
  StageState& state = stage_at(stage);
  RankState& rank = rank_at(state.shape.rank);
  const Duration arrival = backward_arrival(stage);
  const int microbatch = state.backwards++;
  const PairCost& cost = instance_.cost(stage, microbatch);
  const Duration end = run(rank, arrival, cost.backward);
  if (state.gradient_to != kNone) {
    backward_arrivals_[instance_.row(state.gradient_to, microbatch)] =
        send(state.backward_link, end, cost.returned);
  }
  rank.active -= cost.held;
  const std::size_t row = of_rank(state.shape.rank, microbatch);
  active_[row] -= cost.held;
  ++passes_done_[row];
  steps_of(state).push_back(
      {.op = instance_.backward_op, .chunk = state.shape.chunk, .microbatch = microbatch});
  if (state.shape.has_weight) {
    rank.kept += cost.kept;
    rank.weights.push_back({.stage = stage, .microbatch = microbatch});
  }
  finish_microbatches(state.shape.rank);
}

void OrderBuilder::place_weight(int rank) {
  RankState& own = rank_at(rank);
  const Weight weight = own.weights[own.next_weight++];
  const StageState& state = stage_at(weight.stage);
  const PairCost& cost = instance_.cost(weight.stage, weight.microbatch);
  run(own, Duration{0}, cost.weight);
  own.kept -= cost.kept;
  steps_of(state).push_back(
      {.op = Op::W, .chunk = state.shape.chunk, .microbatch = weight.microbatch});
}

void OrderBuilder::place_weights(int rank) {
  while (weight_waits(rank)) {
    place_weight(rank);
  }
}

void OrderBuilder::fill_wait(int rank, Duration arrival, Duration affordable) {
  const RankState& own = rank_at(rank);
  while (weight_waits(rank) && own.now < arrival) {
    const Weight& next = own.weights[own.next_weight];
    const Duration end = own.now + instance_.cost(next.stage, next.microbatch).weight;
    if (end > arrival && arrival - own.now <= affordable) {
      return;
    }
    place_weight(rank);
  }
}

void OrderBuilder::finish_microbatches(int rank) {
  int oldest = instance_.shape.microbatches;
  for (const int stage : facts_at(rank).stages) {
    oldest = std::min(oldest, backwards(stage));
  }
  rank_at(rank).oldest = oldest;
}

Duration OrderBuilder::makespan() const {
  Duration end{0};
  for (const RankState& rank : ranks_) {
    end = std::max(end, rank.now);
  }
  return end;
}

}  // namespace dipsim
