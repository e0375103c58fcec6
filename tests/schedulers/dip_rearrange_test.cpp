// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/held.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/rearrange.hpp"
#include "sim/core/random.hpp"
#include "tests/schedulers/dip_cases.hpp"
#include "tests/schedulers/dip_graphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dipsim {

namespace {

using dip::GroupMove;
using dip::Index;
using dip::Rearranger;
using dip::ReplicaGraph;
using test::OrderCase;
using test::PipelineSpec;

/// One rank, three microbatches: the passes are F 0 1 2 and B 3 4 5.
ReplicaGraph three_microbatches() {
  PipelineSpec spec;
  spec.ranks = 1;
  for (int m = 0; m < 3; ++m) {
    spec.works.push_back(test::work(m, 0, {test::keep(1, 2, 1)}));
  }
  return dip::replica_graphs(test::pipeline(spec)).front();
}

std::vector<Index> list(std::span<const Index> sequence) {
  return {sequence.begin(), sequence.end()};
}

std::vector<Index> without_weights(const ReplicaGraph& replica, std::span<const Index> sequence) {
  std::vector<Index> rest = list(sequence);
  std::erase_if(rest, [&](Index pass) { return replica.is_weight(pass); });
  return rest;
}

}  // namespace

TEST_CASE("dip rearrange: microbatches change places pass by pass") {
  const ReplicaGraph replica = three_microbatches();
  Rearranger rearranger(replica);
  CHECK(list(rearranger.exchange(std::vector<Index>{0, 1, 3, 2, 4, 5}, 0, 2)) ==
        std::vector<Index>{2, 1, 5, 0, 4, 3});
  CHECK(list(rearranger.exchange(std::vector<Index>{0, 1, 3, 2, 4, 5}, 1, 1)) ==
        std::vector<Index>{0, 1, 3, 2, 4, 5});
}

TEST_CASE("dip rearrange: a group goes next to its target, or just behind what it waits for") {
  const ReplicaGraph replica = three_microbatches();
  Rearranger rearranger(replica);
  const std::vector<Index> natural = {0, 1, 2, 3, 4, 5};
  const auto moved = [&](const GroupMove& move) {
    return list(rearranger.move_group(natural, move));
  };
  CHECK(moved({.group = 2, .target = 0}) == std::vector<Index>{2, 0, 1, 3, 4, 5});
  CHECK(moved({.group = 0, .target = 1, .later = true}) == std::vector<Index>{1, 0, 2, 3, 4, 5});
  CHECK(moved({.group = 0, .forward = false, .target = 2}) == std::vector<Index>{0, 1, 3, 2, 4, 5});
  CHECK(
      moved({.group = 0, .forward = false, .target = 1, .target_forward = false, .later = true}) ==
      std::vector<Index>{0, 1, 2, 4, 3, 5});
  CHECK(moved({.group = 2, .forward = false, .target = 0}) ==
        std::vector<Index>{0, 1, 2, 5, 3, 4});  // behind its own F
  CHECK(moved({.group = 2, .target = 0, .rank = 0}) == std::vector<Index>{2, 0, 1, 3, 4, 5});
}

TEST_CASE("dip rearrange: a move on one rank leaves the orders of the others") {
  PipelineSpec spec;
  spec.ranks = 2;
  for (int m = 0; m < 2; ++m) {
    spec.works.push_back(test::work(m, 0, {test::keep(1, 2, 1)}));
  }
  const ReplicaGraph replica = dip::replica_graphs(test::pipeline(spec)).front();
  Rearranger rearranger(replica);
  const std::vector<Index> sequence = {0, 2, 1, 3, 4, 5, 6, 7};  // F of rank 0, of rank 1, B
  REQUIRE(test::follows_precedence(replica, sequence));
  const auto before = test::rank_orders(replica, sequence);
  const auto after = test::rank_orders(
      replica, rearranger.move_group(sequence, {.group = 1, .target = 0, .rank = 1}));
  CHECK(after[0] == before[0]);
  CHECK(after[1] != before[1]);
}

TEST_CASE("dip rearrange: every result is an order of all passes that follows precedence") {
  std::size_t changed = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip rearrange");
    const OrderCase made = test::random_order_case(random, {.split = seed % 2 == 0});
    const ReplicaGraph& replica = made.replica;
    const auto draw = [&](std::size_t count) {
      return static_cast<Index>(random.integer(0, static_cast<std::int64_t>(count) - 1));
    };
    Rearranger rearranger(replica);
    std::vector<Index> sequence = made.sequence;
    for (int step = 0; step < 20; ++step) {
      CAPTURE(step);
      const std::vector<Index> after =
          step % 2 == 0 ? list(rearranger.exchange(sequence, draw(replica.components),
                                                   draw(replica.components)))
                        : list(rearranger.move_group(
                              sequence, {.group = draw(replica.groups.size()),
                                         .forward = draw(2) == 0,
                                         .target = draw(replica.groups.size()),
                                         .target_forward = draw(2) == 0,
                                         .later = draw(2) == 0,
                                         .rank = draw(2) == 0 ? ReplicaGraph::kNone
                                                              : draw(replica.ranks.size())}));
      REQUIRE(after.size() == replica.passes.size());
      REQUIRE(test::follows_precedence(replica, after));
      changed += after == sequence ? 0U : 1U;
      sequence = after;
    }
  }
  CHECK(changed > 500);
}

TEST_CASE("dip rearrange: refilling keeps the order of all but W, and fits where W at once would") {
  std::size_t tight = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip refill");
    OrderCase made = test::random_order_case(random, {.all_split = true});
    // The same order with every W right behind its I.
    std::vector<Index> at_once;
    for (const Index pass : without_weights(made.replica, made.sequence)) {
      at_once.push_back(pass);
      const Index pair = made.replica.passes[pass].pair;
      if (!made.replica.is_forward(pass) && made.replica.weight[pair] != ReplicaGraph::kNone) {
        at_once.push_back(made.replica.weight[pair]);
      }
    }
    const auto free = dip::least_free(made.replica, at_once, made.choice);
    for (std::size_t r = 0; r < free.size(); ++r) {
      made.graph.placement.ranks[r].memory_limit.count -= free[r];
    }
    made.replica = dip::replica_graphs(made.graph).front();
    std::vector<dip::Nanoseconds> durations(made.replica.passes.size());
    dip::set_durations(made.replica, made.choice, durations);
    Rearranger rearranger(made.replica);
    const double fit = 0.5 * static_cast<double>(random.integer(0, 2));
    const auto refilled = list(rearranger.refill(made.sequence, made.choice, durations, fit));
    REQUIRE(refilled.size() == made.sequence.size());
    REQUIRE(test::follows_precedence(made.replica, refilled));
    CHECK(test::rank_orders(made.replica, without_weights(made.replica, refilled)) ==
          test::rank_orders(made.replica, without_weights(made.replica, made.sequence)));
    CHECK(std::ranges::min(dip::least_free(made.replica, refilled, made.choice)) >= 0);
    tight += refilled == at_once ? 0U : 1U;
  }
  CHECK(tight > 100);
}

TEST_CASE("dip rearrange: W fill idle time that is long enough for their share of it") {
  // I takes 30 ns on rank 0 and 60 ns on rank 1, so rank 0 idles for 30 ns between its two I; W
  // takes 40 ns.
  PipelineSpec spec;
  spec.ranks = 2;
  for (int m = 0; m < 2; ++m) {
    spec.works.push_back(
        test::work(m, 0, {test::split_strategy(RecomputeMode::Keep, 1, 30, 40, 1, 1)}));
    spec.works.back().split = true;
  }
  const ReplicaGraph replica = dip::replica_graphs(test::pipeline(spec)).front();
  const dip::Choice choice(replica.pair_count(), 0);
  std::vector<dip::Nanoseconds> durations(replica.passes.size());
  dip::set_durations(replica, choice, durations);
  std::vector<Index> natural;
  for (Index pass = 0; pass < replica.passes.size(); ++pass) {
    natural.push_back(pass);  // F by microbatch, I, W
    const bool is_i = !replica.is_forward(pass) && !replica.is_weight(pass);
    durations[pass] += is_i && replica.passes[pass].rank == 1 ? 30 : 0;
  }
  REQUIRE(test::follows_precedence(replica, natural));
  Rearranger rearranger(replica);
  const auto kinds_on = [&](Index rank, double fit) {
    std::string text;
    for (const Index pass : rearranger.refill(natural, choice, durations, fit)) {
      if (replica.passes[pass].rank == rank) {
        text += replica.is_weight(pass) ? 'W' : (replica.is_forward(pass) ? 'F' : 'I');
      }
    }
    return text;
  };
  CHECK(kinds_on(0, 0.0) == "FFIWIW");
  CHECK(kinds_on(0, 0.75) == "FFIWIW");
  CHECK(kinds_on(0, 1.0) == "FFIIWW");
  CHECK(kinds_on(1, 0.0) == "FFIIWW");  // never idles between its two I
}

}  // namespace dipsim
