// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/exact.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/schedulers/exact_oracle.hpp"
#include "tests/support/small_instances.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

using test::SmallInstance;

std::size_t works_of(const SmallInstance& instance, ModuleId module) {
  std::size_t count = 0;
  for (const Work& work : instance.whole.works) {
    count += work.module == module ? 1U : 0U;
  }
  return count;
}

/// One microbatch after the other, each forward and back through all ranks, W right after I.
Schedule one_after_the_other(const TaskGraph& graph) {
  std::vector<std::vector<Slot>> cells(graph.placement.cells.size());
  const auto add = [&](TaskId task) {
    if (task.valid()) {
      cells[graph.task(task).rank.row()].push_back({.task = task, .together = {}});
    }
  };
  std::set<std::int32_t> microbatches;
  for (const Work& work : graph.works) {
    microbatches.insert(work.portions.front().microbatch.value);
  }
  for (const std::int32_t microbatch : microbatches) {
    std::map<ChunkId, Pair> pairs;  // chunks stand in flow order
    for (const Pair& pair : graph.pairs) {
      const Work& work = graph.works[graph.task(pair.f).work.row()];
      if (work.portions.front().microbatch.value == microbatch) {
        pairs[graph.task(pair.f).chunk] = pair;
      }
    }
    for (const auto& [chunk, pair] : pairs) {
      add(pair.f);
    }
    for (const auto& [chunk, pair] : pairs | std::views::reverse) {
      add(pair.b);
      add(pair.i);
      add(pair.w);
    }
  }
  Schedule schedule;
  for (const std::vector<Slot>& slots : cells) {
    schedule.compute.add_row(slots);
  }
  schedule.chosen = test::first_strategies(graph);
  return schedule;
}

bool fits(const TaskGraph& graph, const Schedule& schedule) {
  const Timeline timeline = OrderEvaluator(graph).evaluate(schedule);
  for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
    if (timeline.memory[r].peak > graph.placement.ranks[r].memory_limit) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("small instances: equal arguments give equal instances, other ones others") {
  const SmallInstance a = test::small_instance(1, 7);
  CHECK(a.whole == test::small_instance(1, 7).whole);
  CHECK(a.split == test::small_instance(1, 7).split);
  CHECK_FALSE(a.whole == test::small_instance(1, 8).whole);
  CHECK_FALSE(a.whole == test::small_instance(2, 7).whole);
}

TEST_CASE("small instances: both graphs are valid and hold the same work") {
  for (std::size_t i = 0; i < 100; ++i) {
    CAPTURE(i);
    const SmallInstance instance = test::small_instance(1, i);
    CHECK_NOTHROW(validate(instance.whole));
    CHECK_NOTHROW(validate(instance.split));
    CHECK(instance.whole.works == instance.split.works);
    CHECK(instance.whole.placement == instance.split.placement);
    const auto ranks = static_cast<std::size_t>(instance.ranks);
    CHECK(instance.whole.placement.ranks.size() == ranks);
    CHECK(works_of(instance, ModuleId{1}) == static_cast<std::size_t>(instance.microbatches));
    CHECK(instance.whole.pairs.size() == ranks * instance.whole.works.size());
    for (std::size_t p = 0; p < instance.whole.pairs.size(); ++p) {
      const Pair& whole = instance.whole.pairs[p];
      const Pair& split = instance.split.pairs[p];
      CHECK(whole.b.valid());
      CHECK((split.i.valid() && split.w.valid()));
      CHECK(whole.strategy_count == 1);
      const Strategy& strategy = instance.whole.strategy(whole.first_strategy);
      CHECK(strategy == instance.split.strategy(split.first_strategy));
      CHECK(strategy.b == strategy.i + strategy.w);
      CHECK(strategy.w > Duration{0});
    }
  }
}

TEST_CASE("small instances: one microbatch after the other fits in memory") {
  for (std::size_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    const SmallInstance instance = test::small_instance(9, i);
    for (const TaskGraph* graph : {&instance.whole, &instance.split}) {
      CHECK(fits(*graph, one_after_the_other(*graph)));
    }
  }
}

TEST_CASE("small instances: every kind that the generator promises occurs") {
  std::set<std::pair<int, int>> shapes;
  int tight = 0;
  int text_only = 0;
  int latency = 0;
  int occupied = 0;
  int microbatches = 0;
  constexpr int kInstances = 300;
  for (std::size_t i = 0; i < kInstances; ++i) {
    SmallInstance instance = test::small_instance(1, i);
    shapes.emplace(instance.ranks, instance.microbatches);
    microbatches += instance.microbatches;
    text_only += instance.microbatches - static_cast<int>(works_of(instance, ModuleId{0}));
    Duration most_latency{0};
    Duration most_occupied{0};
    for (const Task& task : instance.whole.tasks) {
      most_latency = std::max(most_latency, task.latency);
      most_occupied = std::max(most_occupied, task.fixed);
    }
    latency += most_latency > Duration{0} ? 1 : 0;
    occupied += most_occupied > Duration{0} ? 1 : 0;
    std::int64_t all = 0;  // rank 0 holds it where all its forwards come first
    for (const Pair& pair : instance.whole.pairs) {
      if (instance.whole.task(pair.f).rank == RankId{0}) {
        all += instance.whole.strategy(pair.first_strategy).f_to_i.count;
      }
    }
    tight += all > instance.whole.rank(RankId{0}).memory_limit.count ? 1 : 0;
  }
  CHECK(shapes.size() == 6);
  CHECK(std::abs(text_only - microbatches / 5) < microbatches / 20);
  CHECK(std::abs(latency - 2 * kInstances / 3) < kInstances / 10);
  CHECK(std::abs(occupied - kInstances / 3) < kInstances / 10);
  CHECK(std::abs(tight - kInstances / 2) < kInstances / 10);
}

TEST_CASE("small instances: the optimum is proven, above its bound and below one after the other") {
  for (std::size_t i = 0; i < 25; ++i) {
    CAPTURE(i);
    const SmallInstance instance = test::small_instance(1, i);
    for (const TaskGraph* graph : {&instance.whole, &instance.split}) {
      ExactOptions options;
      options.incumbent = one_after_the_other(*graph);
      const ExactResult result = solve_exact(*graph, test::first_strategies(*graph), options);
      CHECK(result.proven);
      CHECK(result.makespan >= lower_bound(*graph).makespan);
      CHECK(fits(*graph, result.schedule));
      CHECK(result.makespan <= OrderEvaluator(*graph).evaluate(*options.incumbent).makespan);
    }
  }
}

}  // namespace dipsim
