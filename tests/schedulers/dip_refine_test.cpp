// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/held.hpp"
#include "schedulers/dip/interleave.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/refine.hpp"
#include "sim/core/random.hpp"
#include "tests/schedulers/dip_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace dipsim {

namespace {

using dip::ByteCount;
using dip::Composition;
using dip::Index;
using dip::Nanoseconds;
using dip::PassKind;
using dip::RefineOptions;
using dip::Refiner;
using dip::ReplicaGraph;
using test::OrderCase;
using test::PipelineSpec;

/// The order of the case, timed.
Composition composition_of(const OrderCase& made) {
  const Schedule schedule = test::schedule_of(made.graph, made.replica, made.sequence, made.choice);
  return {.sequence = made.sequence,
          .choice = made.choice,
          .makespan = OrderEvaluator(made.graph).evaluate(schedule).makespan.count()};
}

/// A random order, on ranks that have just the memory that it needs, or a little more.
OrderCase tight_case(RandomStream& random, const test::PipelineShape& shape) {
  OrderCase made = test::random_order_case(random, shape);
  const Timeline timeline =
      OrderEvaluator(made.graph)
          .evaluate(test::schedule_of(made.graph, made.replica, made.sequence, made.choice));
  for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
    made.graph.placement.ranks[r].memory_limit =
        timeline.memory[r].peak + Bytes{random.integer(0, 30)};
  }
  made.replica = dip::replica_graphs(made.graph).front();
  return made;
}

/// The least makespan over all orders of all ranks that keep to the memory limit: every sequence of
/// passes by their start, cut off where it can't be better than the best so far.
class BestOrder {
 public:
  BestOrder(const ReplicaGraph& replica, const dip::Choice& choice)
      : replica_(replica),
        choice_(choice),
        durations_(replica.passes.size()),
        tails_(replica.passes.size(), 0),
        left_(replica.ranks.size(), 0) {
    dip::set_durations(replica, choice, durations_);
    State start{.ready = std::vector<Nanoseconds>(replica.passes.size(), 0),
                .missing = std::vector<Index>(replica.passes.size()),
                .rank_free = std::vector<Nanoseconds>(replica.ranks.size(), 0),
                .link_free = std::vector<Nanoseconds>(replica.links, 0),
                .held = std::vector<ByteCount>(replica.ranks.size(), 0)};
    for (Index pass = 0; pass < replica.passes.size(); ++pass) {
      start.missing[pass] = replica.passes[pass].predecessors;
      left_[replica.passes[pass].rank] += durations_[pass];
    }
    for (std::size_t round = 0; round < tails_.size(); ++round) {  // until nothing changes
      for (Index pass = 0; pass < tails_.size(); ++pass) {
        tails_[pass] = std::max(tails_[pass], longest_way(pass));
      }
    }
    start_ = start;
  }

  Nanoseconds find(Nanoseconds known) {
    best_ = known;
    place_next(start_, 0, 0, 0);
    return best_;
  }

 private:
  struct State {
    std::vector<Nanoseconds> ready;
    std::vector<Index> missing;
    std::vector<Nanoseconds> rank_free;
    std::vector<Nanoseconds> link_free;
    std::vector<ByteCount> held;
  };

  static constexpr Index kPlaced = std::numeric_limits<Index>::max();

  Nanoseconds longest_way(Index pass) const {
    Nanoseconds longest = 0;
    const dip::Pass& from = replica_.passes[pass];
    for (Index h = from.first_hop; h < from.last_hop; ++h) {
      const dip::Hop& hop = replica_.hops[h];
      const Nanoseconds lag = hop.link == dip::Hop::kDirect ? 0 : hop.occupied + hop.latency;
      longest = std::max(longest, lag + durations_[hop.to] + tails_[hop.to]);
    }
    return longest;
  }

  /// Whether the pass fits now; books what it leaves behind. Rules of sim/graph/memory.hpp.
  bool take_memory(State& state, Index pass) const {
    const dip::Pass& of = replica_.passes[pass];
    const dip::PairOption& option = replica_.options_of(of.pair)[choice_[of.pair]];
    const bool has_backward = replica_.backward[of.pair] != ReplicaGraph::kNone;
    const bool has_weight = replica_.weight[of.pair] != ReplicaGraph::kNone;
    ByteCount& held = state.held[of.rank];
    ByteCount needed = held + replica_.transient[pass];
    switch (replica_.kind(pass)) {
      case PassKind::Forward:
        needed += option.held;
        held += has_backward ? option.held : 0;
        break;
      case PassKind::Backward:
        needed += option.rebuilt;
        held += (has_weight ? option.kept : 0) - option.held;
        break;
      case PassKind::Weight:
        held -= option.kept;
    }
    return needed <= replica_.room[of.rank];
  }

  void place_next(const State& state, std::size_t placed, Nanoseconds from, Nanoseconds end) {
    if (placed == replica_.passes.size()) {
      best_ = std::min(best_, end);
      return;
    }
    for (std::size_t rank = 0; rank < left_.size(); ++rank) {
      if (left_[rank] > 0 && std::max(from, state.rank_free[rank]) + left_[rank] >= best_) {
        return;
      }
    }
    for (Index pass = 0; pass < replica_.passes.size(); ++pass) {
      if (state.missing[pass] == 0) {
        place(state, pass, placed, from, end);
      }
    }
  }

  void place(const State& state, Index pass, std::size_t placed, Nanoseconds from,
             Nanoseconds end) {
    const dip::Pass& of = replica_.passes[pass];
    const Nanoseconds start = std::max(state.ready[pass], state.rank_free[of.rank]);
    const Nanoseconds stop = start + durations_[pass];
    if (start < from || stop + tails_[pass] >= best_) {
      return;
    }
    State next = state;
    if (!take_memory(next, pass)) {
      return;
    }
    next.missing[pass] = kPlaced;
    next.rank_free[of.rank] = stop;
    Nanoseconds arrival = stop;
    for (Index h = of.first_hop; h < of.last_hop; ++h) {
      const dip::Hop& hop = replica_.hops[h];
      if (hop.link == dip::Hop::kDirect) {
        arrival = stop;
      } else if (hop.link != dip::Hop::kShared) {
        next.link_free[hop.link] = std::max(stop, next.link_free[hop.link]) + hop.occupied;
        arrival = next.link_free[hop.link] + hop.latency;
      }
      next.ready[hop.to] = std::max(next.ready[hop.to], arrival);
      --next.missing[hop.to];
    }
    left_[of.rank] -= durations_[pass];
    place_next(next, placed + 1, start, std::max(end, stop));
    left_[of.rank] += durations_[pass];
  }

  const ReplicaGraph& replica_;
  const dip::Choice& choice_;
  std::vector<Nanoseconds> durations_;
  std::vector<Nanoseconds> tails_;
  std::vector<Nanoseconds> left_;  ///< per rank: time of the passes not yet placed
  State start_;
  Nanoseconds best_ = 0;
};

/// What the interleaver makes of the natural order.
std::vector<Index> natural(const OrderCase& made) {
  std::vector<Nanoseconds> durations(made.replica.passes.size());
  dip::set_durations(made.replica, made.choice, durations);
  const dip::MemoryLevel level = dip::memory_level(made.replica, made.choice);
  dip::Interleaver interleaver(made.replica);
  const auto sequence = interleaver.run(dip::natural_order(made.replica), durations, level, level);
  return {sequence.begin(), sequence.end()};
}

}  // namespace

TEST_CASE("dip refine: never worse, legal, inside the limit, and the strategies stay") {
  std::size_t better = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip refine");
    const OrderCase made = tight_case(
        random, {.queueing = seed % 2 == 0, .split = seed % 3 > 0, .twins = seed % 4 == 0});
    const Composition start = composition_of(made);
    Composition refined = start;
    Refiner refiner(made.replica);
    refiner.refine(refined, {.steps = 600, .seed = seed});
    CHECK(refined.makespan <= start.makespan);
    better += refined.makespan < start.makespan ? 1U : 0U;
    CHECK(refined.choice == start.choice);
    REQUIRE(test::follows_precedence(made.replica, refined.sequence));
    const Schedule schedule =
        test::schedule_of(made.graph, made.replica, refined.sequence, refined.choice);
    CHECK_NOTHROW(validate(made.graph, schedule));
    const Timeline timeline = OrderEvaluator(made.graph).evaluate(schedule);
    CHECK(timeline.makespan.count() == refined.makespan);
    for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
      CHECK(timeline.memory[r].peak <= made.graph.placement.ranks[r].memory_limit);
    }
  }
  CHECK(better > 30);
}

TEST_CASE("dip refine: equal seeds give equal orders, whatever ran before") {
  std::size_t different = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip refine seeds");
    const OrderCase made = tight_case(random, {.split = seed % 2 == 0});
    const auto refined = [&](Refiner& refiner, std::uint64_t of_seed) {
      Composition composition = composition_of(made);
      refiner.refine(composition, {.steps = 400, .seed = of_seed});
      return composition.sequence;
    };
    Refiner fresh(made.replica);
    Refiner used(made.replica);
    const auto other = refined(used, seed + 1);
    const auto first = refined(fresh, seed);
    CHECK(refined(used, seed) == first);
    different += other == first ? 0U : 1U;
  }
  CHECK(different > 0);  // the seed matters
}

TEST_CASE("dip refine: nothing changes without steps") {
  RandomStream random(6, "dip refine target");
  const OrderCase made = test::random_order_case(random, {});
  const Composition start = composition_of(made);
  Composition refined = start;
  Refiner(made.replica).refine(refined, {.steps = 0, .seed = 1});
  CHECK(refined.sequence == start.sequence);
  CHECK(refined.makespan == start.makespan);
}

TEST_CASE("dip refine: from an order that does not fit to one that does, or nothing changes") {
  int mended = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip refine excess");
    OrderCase made = test::random_order_case(random, {.ranks = 2, .microbatches = 3});
    const auto free = dip::least_free(made.replica, made.sequence, made.choice);
    for (std::size_t r = 0; r < free.size(); ++r) {
      made.graph.placement.ranks[r].memory_limit.count -= free[r] + (r == 0 ? 1 : 0);
    }
    made.replica = dip::replica_graphs(made.graph).front();
    const Composition start = composition_of(made);
    Composition refined = start;
    Refiner(made.replica).refine(refined, {.steps = 3000, .seed = seed});
    if (refined.sequence == start.sequence) {
      CHECK(refined.makespan == start.makespan);
    } else {
      CHECK(dip::keep_to_limit(made.replica, refined.sequence, refined.choice));
      ++mended;
    }
  }
  CHECK(mended > 10);
}

TEST_CASE("dip refine: on tiny pipelines it finds the best of all orders") {
  // Two ranks, up to 8 passes on each, with plenty of memory or just what the start needs.
  std::size_t improved = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip refine optimum");
    PipelineSpec spec;
    spec.ranks = 2;
    spec.latency = Duration{random.integer(0, 20)};
    spec.occupied = Duration{seed % 4 == 0 ? random.integer(0, 20) : 0};
    const bool split = seed % 2 == 1;
    const int microbatches = split ? 2 : 4;
    const auto strategies = [&] {
      const std::int64_t held = random.integer(1, 10);
      return std::vector<Strategy>{
          test::split_strategy(RecomputeMode::Keep, random.integer(1, 40), random.integer(1, 40),
                               random.integer(1, 40), held, random.integer(0, 12))};
    };
    for (int m = 0; m < microbatches; ++m) {
      spec.works.push_back(test::work(m, 0, strategies()));
      spec.works.back().split = split;
    }
    OrderCase made{.graph = test::pipeline(spec), .replica = {}, .choice = {}, .sequence = {}};
    made.replica = dip::replica_graphs(made.graph).front();
    made.choice.assign(made.replica.pair_count(), 0);
    made.sequence = seed % 5 == 0 ? test::random_sequence(made.replica, random) : natural(made);
    const Composition start = composition_of(made);
    const Timeline timeline =
        OrderEvaluator(made.graph)
            .evaluate(test::schedule_of(made.graph, made.replica, made.sequence, made.choice));
    if (seed % 3 > 0) {
      test::set_limit(made.graph, test::peak_of(timeline).count);
      made.replica = dip::replica_graphs(made.graph).front();
    }
    Composition refined = start;
    Refiner(made.replica).refine(refined, {.steps = 10'000, .seed = seed});
    CHECK(refined.makespan == BestOrder(made.replica, made.choice).find(refined.makespan));
    improved += refined.makespan < start.makespan ? 1U : 0U;
  }
  CHECK(improved > 20);
}

}  // namespace dipsim
