// SPDX-License-Identifier: Apache-2.0
// What holds for every schedule whose order depends on times and memory.
#include "sim/core/error.hpp"
#include "sim/graph/bound.hpp"
#include "tests/schedulers/unequal_graphs.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace dipsim;
using test::FakeCosts;

constexpr std::array kTimed = {"zb-1p", "zb-2p", "zb-v", "dynapipe"};

/// Orders the graph and checks everything that must hold whatever the limits.
Schedule checked_order(const test::Unplanned& made) {
  const Schedule schedule = made.planner->order(made.graph);
  validate(made.graph, schedule);
  const Timeline timeline = OrderEvaluator(made.graph).evaluate(schedule);  // no deadlock
  RC_ASSERT(timeline == simulate(made.graph, schedule));
  RC_ASSERT(timeline.makespan >= lower_bound(made.graph).makespan);
  for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
    RC_ASSERT(timeline.memory[r].peak <= made.graph.placement.ranks[r].memory_limit);
  }
  return schedule;
}

test::Unplanned random_unequal(const char* name) {
  SyntheticSpec spec;
  spec.ranks = *rc::gen::inRange(1, 7);
  spec.microbatches = *rc::gen::inRange(1, 20);
  spec.replicas = *rc::gen::inRange(1, 3);
  spec.chunks = find_schedule(name).default_chunks;
  test::Unplanned made = test::unplanned(name, *make_synthetic(spec), synthetic_batch(spec));
  test::make_unequal(made.graph, *rc::gen::arbitrary<std::uint64_t>());
  return made;
}

TEST_CASE("timed orders: unequal microbatches never deadlock and never exceed a tight limit") {
  for (const char* name : kTimed) {
    CAPTURE(name);
    CHECK(rc::check(name, [name] {
      test::Unplanned made = random_unequal(name);
      test::limit_memory(made.graph, *rc::gen::element<std::int64_t>(100, 101, 120, 150, 300, 900));
      checked_order(made);
    }));
  }
}

TEST_CASE(
    "timed orders: where one microbatch after the other does not fit, they say on which rank") {
  for (const char* name : kTimed) {
    CAPTURE(name);
    CHECK(rc::check(name, [name] {
      test::Unplanned made = random_unequal(name);
      test::limit_memory(made.graph, 100);
      const auto ranks = static_cast<int>(made.graph.placement.ranks.size());
      const int rank = *rc::gen::inRange(0, ranks);
      Rank& tight = made.graph.placement.ranks[static_cast<std::size_t>(rank)];
      tight.memory_limit -= Bytes{1};
      try {
        (void)made.planner->order(made.graph);
        RC_FAIL("a limit that is too small was accepted");
      } catch (const Error& error) {
        RC_ASSERT(error.kind() == ErrorKind::Infeasible);
        RC_ASSERT(error.where() == "rank " + std::to_string(rank));
        RC_ASSERT(error.message().find(std::to_string(tight.memory_limit.count) + " bytes") !=
                  std::string::npos);
      }
    }));
  }
}

TEST_CASE("timed orders: a multimodal model with frozen and empty parts, at tight memory") {
  for (const char* name : kTimed) {
    CAPTURE(name);
    CHECK(rc::check(name, [name] {
      const bool vit = *rc::gen::arbitrary<bool>();
      const bool audio = *rc::gen::arbitrary<bool>();
      const bool lm = *rc::gen::arbitrary<bool>();
      FakeCosts costs(
          {{"vit", 4, 1, vit ? 1 : 0, vit ? 1 : 0, vit, {}},
           {"audio", 3, 2, audio ? 2 : 0, audio ? 1 : 0, audio, {}},
           {"lm", 6, 2, vit || audio || lm ? 3 : 0, lm ? 2 : 0, lm, {ModuleId{0}, ModuleId{1}}}},
          *rc::gen::inRange(1, 6));
      std::vector<test::FakeMicrobatch> microbatches;
      const int count = *rc::gen::inRange(1, 12);
      microbatches.reserve(static_cast<std::size_t>(count));
      for (int m = 0; m < count; ++m) {
        microbatches.push_back(
            {{*rc::gen::inRange(0, 40)}, {*rc::gen::inRange(0, 20)}, {*rc::gen::inRange(1, 30)}});
      }
      PlannerOptions options;
      options.partition = PartitionRule::Parameters;  // stages of frozen layers only, too
      options.recompute = *rc::gen::element(RecomputeMode::Keep, RecomputeMode::Full);
      test::Unplanned made = test::unplanned(name, costs, test::fake_batch(microbatches), options);
      test::limit_memory(made.graph, *rc::gen::element<std::int64_t>(100, 130, 200, 1000),
                         options.recompute);
      const Schedule schedule = checked_order(made);
      for (const StrategyId chosen : schedule.chosen) {
        RC_ASSERT(made.graph.strategy(chosen).mode == options.recompute);
      }
    }));
  }
}

TEST_CASE("timed orders: what does not fit when kept fits when recomputed") {
  const FakeCosts costs({{"lm", 8, 1, 1, 1, true, {}}}, 2);
  for (const char* name : kTimed) {
    CAPTURE(name);
    PlannerOptions options;
    options.recompute = RecomputeMode::Full;
    test::Unplanned made =
        test::unplanned(name, costs, test::fake_batch({{{50}}, {{60}}, {{40}}}), options);
    for (Strategy& strategy : made.graph.strategies) {
      strategy.rebuilt = Bytes{0};  // as if layers were recomputed one by one
    }
    test::limit_memory(made.graph, 100, RecomputeMode::Full);
    checked_order(made);
    CHECK_THROWS_AS((void)find_schedule(name).make({})->order(made.graph), Error);
  }
}

TEST_CASE("timed orders: a replica may have nothing to do") {
  const FakeCosts costs({{"lm", 8, 1, 1, 1, true, {}}}, 2, 2);
  for (const char* name : kTimed) {
    CAPTURE(name);
    const test::Unplanned made = test::unplanned(name, costs, test::fake_batch({{{5}}, {{6}}}));
    const Schedule schedule = checked_order(made);
    CHECK_FALSE(schedule.compute[0].empty());
    CHECK(schedule.compute[2].empty());
  }
}

TEST_CASE("timed orders: a replica with nothing to do must still hold its weights") {
  const FakeCosts costs({{"lm", 8, 1, 1, 1, true, {}}}, 2, 2);
  for (const char* name : kTimed) {
    CAPTURE(name);
    test::Unplanned made = test::unplanned(name, costs, test::fake_batch({{{5}}, {{6}}}));
    Rank& idle = made.graph.placement.ranks[3];
    idle.memory_limit = static_memory(made.graph.placement)[3];
    CHECK_NOTHROW(checked_order(made));
    idle.memory_limit -= Bytes{1};
    const Error error = test::error_of([&] { (void)made.planner->order(made.graph); });
    CHECK(error.kind() == ErrorKind::Infeasible);
    CHECK(error.where() == "rank 3");
    CHECK(error.message().find("by 1 bytes") != std::string::npos);
  }
}

TEST_CASE("timed orders: equal inputs give equal orders") {
  for (const char* name : kTimed) {
    CAPTURE(name);
    SyntheticSpec spec = test::pipeline(4, 12, find_schedule(name).default_chunks, 3, 4, 2);
    test::Unplanned first = test::unplanned(name, *make_synthetic(spec), synthetic_batch(spec));
    test::make_unequal(first.graph, 7);
    test::Unplanned second = test::unplanned(name, *make_synthetic(spec), synthetic_batch(spec));
    test::make_unequal(second.graph, 7);
    CHECK(first.planner->order(first.graph) == second.planner->order(second.graph));
  }
}

}  // namespace
