// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/planner.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/schedulers/dip_graphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace dipsim {

namespace {

using dip::Index;
using dip::ReplicaGraph;
using test::PipelineSpec;

/// A small vision-language pipeline whose costs follow the size of the slice.
PipelineSpec multimodal(std::uint64_t seed, std::int64_t limit) {
  RandomStream random(seed, "dip planner");
  PipelineSpec spec;
  spec.ranks = 4;
  spec.segments = {2, 1};
  spec.memory_limit = Bytes{limit};
  spec.occupied = Duration{3};
  spec.latency = Duration{2};
  const auto strategies = [](std::int64_t f, std::int64_t held) {
    return std::vector<Strategy>{
        test::strategy(RecomputeMode::Keep, f, 2 * f, 16 * held),
        test::strategy(RecomputeMode::Selective, f, 2 * f + f / 16, 10 * held, held),
        test::strategy(RecomputeMode::Full, f, 3 * f, held, 4 * held)};
  };
  for (int m = 0; m < 12; ++m) {
    for (std::int64_t images = random.integer(0, 30); images > 0; images -= 12) {
      const std::int64_t size = std::min<std::int64_t>(images, 12);
      spec.works.push_back(test::work(m, 0, strategies(20 + 10 * size, size)));
    }
    spec.works.push_back(test::work(m, 1, strategies(200, 10)));
  }
  return spec;
}

std::string message_of(const TaskGraph& graph, ErrorKind kind) {
  try {
    static_cast<void>(make_dip({})->order(graph));
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.where() + ": " + error.message();
  }
  return "";
}

DipOptions evaluations(std::size_t count) {
  DipOptions options;
  options.evaluations = count;
  return options;
}

/// The shortest composition of the natural order over all ways.
Duration best_natural(const TaskGraph& graph, const DipOptions& options) {
  const ReplicaGraph replica = dip::replica_graphs(graph).front();
  dip::Composer composer(graph, replica, options);
  dip::Nanoseconds best = std::numeric_limits<dip::Nanoseconds>::max();
  for (const dip::Way& way : composer.ways()) {
    best = std::min(best, composer.compose(dip::natural_order(replica), way).makespan);
  }
  return Duration{best};
}

void check_plan(const TaskGraph& graph, const Schedule& schedule, Bytes limit) {
  CHECK_NOTHROW(validate(graph, schedule));
  const Timeline timeline = OrderEvaluator(graph).evaluate(schedule);
  CHECK(timeline.makespan >= lower_bound(graph).makespan);
  for (const MemoryCurve& curve : timeline.memory) {
    CHECK(curve.peak <= limit);
  }
}

}  // namespace

TEST_CASE("dip replica graph: groups stand in natural order, backwards against the flow") {
  PipelineSpec spec;
  spec.ranks = 1;
  spec.segments = {2, 1};
  const std::vector<Strategy> costs = {test::keep(1, 2, 1)};
  spec.works = {test::work(1, 1, costs), test::work(1, 0, costs),  // out of order on purpose
                test::work(0, 1, costs), test::work(0, 0, costs), test::work(0, 0, costs)};
  const TaskGraph graph = test::pipeline(spec);
  const auto replicas = dip::replica_graphs(graph);
  REQUIRE(replicas.size() == 1);
  const ReplicaGraph& replica = replicas[0];
  std::vector<std::pair<int, int>> groups;
  groups.reserve(replica.groups.size());
  for (const dip::Group& group : replica.groups) {
    groups.emplace_back(group.microbatch.value, group.module.value);
  }
  CHECK(groups == std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  const auto place = [&](Index pass) {
    const Task& task = graph.task(replica.tasks[pass]);
    return std::pair(task.work.value, task.chunk.value);
  };
  const dip::Group& first = replica.groups[0];
  REQUIRE(first.last_forward - first.first_forward == 4);
  CHECK(place(first.first_forward) == std::pair(3, 0));
  CHECK(place(first.first_forward + 1) == std::pair(3, 1));
  CHECK(place(first.first_forward + 2) == std::pair(4, 0));
  CHECK(place(first.first_backward) == std::pair(3, 1));
  CHECK(place(first.first_backward + 1) == std::pair(3, 0));
  CHECK(place(first.first_backward + 2) == std::pair(4, 1));
  CHECK(replica.components == 2);  // one per microbatch
  CHECK(dip::natural_order(replica).forward == std::vector<Index>{0, 1, 2, 3});
  CHECK(dip::natural_order(replica).backward == std::vector<Index>{0, 1, 2, 3});
}

TEST_CASE("dip plan: it is legal and fits, from the tightest memory to plenty") {
  for (const std::int64_t limit : {118, 150, 250, 400, 800, 1600, 3200, 100000}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      CAPTURE(limit);
      CAPTURE(seed);
      const TaskGraph graph = test::pipeline(multimodal(seed, limit));
      check_plan(graph, make_dip(evaluations(40))->order(graph), Bytes{limit});
    }
  }
}

TEST_CASE("dip plan: with plenty of memory nothing is recomputed") {
  const TaskGraph graph = test::pipeline(multimodal(1, 1'000'000));
  const Schedule schedule = make_dip({})->order(graph);
  CHECK(schedule.chosen == uniform_strategies(graph, RecomputeMode::Keep));
}

TEST_CASE("dip plan: without evaluations it is the natural order in the best of all ways") {
  const TaskGraph graph = test::pipeline(multimodal(3, 900));
  const ReplicaGraph replica = dip::replica_graphs(graph).front();
  const DipOptions options = evaluations(0);
  // No weight passes: a way for each level, and nothing else.
  CHECK(dip::Composer(graph, replica, options).ways().size() == 3);
  const Schedule schedule = make_dip(options)->order(graph);
  CHECK(OrderEvaluator(graph).evaluate(schedule).makespan == best_natural(graph, options));
}

TEST_CASE("dip plan: more rounds and more levels never make it worse") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    const TaskGraph graph = test::pipeline(multimodal(seed, 900));
    const auto makespan = [&](int rounds, std::vector<RecomputeMode> levels) {
      DipOptions options = evaluations(0);
      options.rounds = rounds;
      options.memory_levels = std::move(levels);
      return OrderEvaluator(graph).evaluate(make_dip(options)->order(graph)).makespan;
    };
    const Duration one = makespan(1, {RecomputeMode::Full});
    CHECK(makespan(3, {RecomputeMode::Full}) <= one);
    CHECK(makespan(1, {RecomputeMode::Full, RecomputeMode::Selective}) <= one);
  }
}

TEST_CASE("dip plan: without memory choice all pairs have the mode of one level") {
  DipOptions options = evaluations(40);
  options.memory_choice = false;
  for (const std::int64_t limit : {300, 2000, 100000}) {
    const TaskGraph graph = test::pipeline(multimodal(2, limit));
    const Schedule schedule = make_dip(options)->order(graph);
    check_plan(graph, schedule, Bytes{limit});
    CHECK((schedule.chosen == uniform_strategies(graph, RecomputeMode::Keep) ||
           schedule.chosen == uniform_strategies(graph, RecomputeMode::Selective) ||
           schedule.chosen == uniform_strategies(graph, RecomputeMode::Full)));
    CHECK(OrderEvaluator(graph).evaluate(make_dip(evaluations(40))->order(graph)).makespan <=
          OrderEvaluator(graph).evaluate(schedule).makespan);
  }
}

TEST_CASE("dip plan: replicas are planned each as if it were alone") {
  PipelineSpec first = multimodal(4, 800);
  PipelineSpec second = multimodal(5, 800);
  second.replica = 1;
  for (test::PipelineWork& work : second.works) {
    work.microbatch += 12;
  }
  TaskGraph both;
  test::PipelineBuilder builder(both);
  builder.add(first);
  builder.add(second);
  const Schedule together = make_dip({})->order(both);
  check_plan(both, together, Bytes{800});
  const auto alone = [](const PipelineSpec& spec) {
    const TaskGraph graph = test::pipeline(spec);
    return OrderEvaluator(graph).evaluate(make_dip({})->order(graph)).makespan;
  };
  CHECK(OrderEvaluator(both).evaluate(together).makespan == std::max(alone(first), alone(second)));
}

TEST_CASE("dip plan: equal inputs give equal plans") {
  const TaskGraph graph = test::pipeline(multimodal(6, 700));
  CHECK(make_dip({})->order(graph) == make_dip({})->order(graph));
}

TEST_CASE("dip plan: a slow rank costs its own speed") {
  TaskGraph graph = test::pipeline(multimodal(7, 900));
  graph.placement.ranks[2].speed = 0.5;
  const DipOptions options = evaluations(0);
  const Schedule schedule = make_dip(options)->order(graph);
  CHECK(OrderEvaluator(graph).evaluate(schedule).makespan == best_natural(graph, options));
}

TEST_CASE("dip plan: what it can't do is refused by name") {
  SUBCASE("ranks of several cells") {
    TaskGraph graph = test::pipeline(multimodal(8, 900));
    graph.placement.ranks[1].cells = {CellId{0}, CellId{1}};
    CHECK(message_of(graph, ErrorKind::Input).find("rank 1") != std::string::npos);
  }
  SUBCASE("memory for less than one microbatch") {
    const TaskGraph graph = test::pipeline(multimodal(8, 20));
    CHECK(message_of(graph, ErrorKind::Infeasible).find("not even one microbatch fits") !=
          std::string::npos);
  }
  SUBCASE("a cycle") {
    TaskGraph graph = test::pipeline(multimodal(8, 900));
    graph.edges.push_back({graph.pairs[0].b, graph.pairs[0].f});
    CHECK(message_of(graph, ErrorKind::Input).find("cycle") != std::string::npos);
  }
}

}  // namespace dipsim
