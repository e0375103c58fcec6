// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/offload.hpp"

#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/offload_rank.hpp"
#include "schedulers/dip/offload_timer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace dipsim::dip {

namespace {

/// What a rank may offload of what it keeps: all, or where that makes the plan slower, a share.
constexpr std::array<std::size_t, 3> kDivisors = {1, 4, 16};

/// The way to offload with W where the chosen option has it, and the option that keeps the same.
Variant variant_of(const ReplicaGraph& replica, Index pair, const PairOption& chosen) {
  const auto options = replica.options_of(pair);
  for (const OffloadOption& offload : replica.offloads_of(pair)) {
    const PairOption& like = offload.option;
    const auto twin = std::ranges::find_if(options, [&](const PairOption& o) {
      return same_weight(o, like) && o.forward == like.forward && o.backward == like.backward &&
             o.held == like.held && o.rebuilt == like.rebuilt;
    });
    if (same_weight(like, chosen) && twin != options.end() && offload.away > 0) {
      return {.exists = true,
              .strategy = like.strategy,
              .twin = static_cast<Index>(twin - options.begin()),
              .out = offload.out,
              .in = offload.in,
              .away = offload.away};
    }
  }
  return {};
}

std::vector<Variant> variants_of(const ReplicaGraph& replica, std::span<const Index> choice) {
  std::vector<Variant> variants;
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    const bool possible = replica.backward[pair] != ReplicaGraph::kNone;
    variants.push_back(possible ? variant_of(replica, pair, replica.options_of(pair)[choice[pair]])
                                : Variant{});
  }
  return variants;
}

class Offloader {
 public:
  Offloader(const ReplicaGraph& replica, Composition& composition)
      : graph_(replica),
        best_(composition),
        variants_(variants_of(replica, composition.choice)),
        state_{.choice = composition.choice, .windows = std::vector<Window>(replica.pair_count())},
        timer_(replica, composition.sequence, variants_),
        rank_(replica, composition.sequence, timer_, variants_, times_),
        durations_(replica.passes.size()) {}

  std::vector<PairWindow> run() {
    plan_times();
    for (Index rank = 0; rank < graph_.ranks.size(); ++rank) {
      if (rank_.has_recomputation(rank, state_)) {
        improve(rank);
      }
    }
    best_.choice = state_.choice;
    std::vector<PairWindow> found;
    for (const Index pair : timer_.by_fetch(state_.windows)) {
      const auto order = timer_.order(graph_.passes[pair].rank);
      const Window& window = state_.windows[pair];
      found.push_back({.pair = pair,
                       .strategy = variants_[pair].strategy,
                       .freed_before = order[window.freed],
                       .fetched_after = order[window.fetched]});
    }
    return found;
  }

 private:
  /// Windows are planned on the times of the order without any recomputation: what is hidden there
  /// stays hidden beside longer passes.
  void plan_times() {
    Choice fastest = state_.choice;
    for (Index pair = 0; pair < graph_.pair_count(); ++pair) {
      fastest[pair] = variants_[pair].exists ? variants_[pair].twin : state_.choice[pair];
    }
    set_durations(graph_, fastest, durations_);
    timer_.time(durations_, state_.windows);
    for (Index pass = 0; pass < graph_.passes.size(); ++pass) {
      times_.starts.push_back(timer_.start(pass));
      times_.ends.push_back(timer_.end(pass));
    }
  }

  void improve(Index rank) {
    const Offloads before = state_;
    for (const std::size_t divisor : kDivisors) {
      rank_.offload(rank, divisor, state_);
      set_durations(graph_, state_.choice, durations_);
      const Nanoseconds makespan = timer_.time(durations_, state_.windows);
      if (makespan <= best_.makespan) {
        best_.makespan = makespan;
        return;
      }
      state_ = before;
    }
  }

  const ReplicaGraph& graph_;
  Composition& best_;
  std::vector<Variant> variants_;  ///< per pair
  Offloads state_;
  OffloadTimer timer_;
  PlannedTimes times_;
  RankOffloader rank_;
  std::vector<Nanoseconds> durations_;
};

}  // namespace

std::vector<PairWindow> offload(const ReplicaGraph& replica, Composition& composition) {
  if (replica.offload_options.empty()) {
    return {};
  }
  return Offloader(replica, composition).run();
}

}  // namespace dipsim::dip
