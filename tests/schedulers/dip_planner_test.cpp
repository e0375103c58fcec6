// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/planner.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/schedulers/dip_graphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <stop_token>
#include <string>
#include <thread>
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

namespace {

/// Replica `number` with the data of `spec`, behind the microbatches of those before.
PipelineSpec as_replica(PipelineSpec spec, int number) {
  spec.replica = number;
  for (test::PipelineWork& work : spec.works) {
    work.microbatch += 12 * number;
  }
  return spec;
}

TaskGraph replicas_of(const std::vector<PipelineSpec>& specs) {
  TaskGraph graph;
  test::PipelineBuilder builder(graph);
  for (std::size_t r = 0; r < specs.size(); ++r) {
    builder.add(as_replica(specs[r], static_cast<int>(r)));
  }
  return graph;
}

std::vector<std::size_t> first_equal(const TaskGraph& graph) {
  return dip::first_equal(dip::replica_graphs(graph));
}

}  // namespace

TEST_CASE("dip plan: replicas that ask the same are known, whatever little sets others apart") {
  const PipelineSpec a = multimodal(5, 800);
  const PipelineSpec b = multimodal(6, 800);
  using Rows = std::vector<std::size_t>;
  CHECK(first_equal(replicas_of({a, b, a, a, b})) == Rows{0, 1, 0, 0, 1});
  PipelineSpec other = a;
  other.memory_limit += Bytes{1};
  CHECK(first_equal(replicas_of({a, other})) == Rows{0, 1});
  other = a;
  other.latency += Duration{1};
  CHECK(first_equal(replicas_of({a, other})) == Rows{0, 1});
  TaskGraph slow = replicas_of({a, a});
  slow.placement.ranks[5].speed = 0.9;
  CHECK(first_equal(slow) == Rows{0, 1});
}

TEST_CASE(
    "dip plan: several replicas get the plans that each gets alone, on any number of threads") {
  const PipelineSpec a = multimodal(5, 800);
  const PipelineSpec b = multimodal(6, 800);
  const TaskGraph graph = replicas_of({a, b, a});
  for (const auto make : {make_dip, make_dip_plus}) {
    DipOptions options = evaluations(40);
    options.jobs = 1;
    const Schedule one = make(options)->order(graph);
    check_plan(graph, one, Bytes{800});
    for (const std::size_t jobs : {std::size_t{2}, std::size_t{7}}) {
      options.jobs = jobs;
      std::atomic<std::size_t> planned{0};
      options.planned = [&](std::size_t replicas) { planned += replicas; };
      CHECK(make(options)->order(graph) == one);
      CHECK(planned == 3);
    }
    // Row by row the same: ranks, passes and pairs of replica 2 are those of replica 0, shifted.
    const TaskGraph alone = test::pipeline(a);
    const Schedule of_alone = make(options)->order(alone);
    const auto strategy = [](const TaskGraph& of, const Schedule& schedule, std::size_t pair) {
      return schedule.chosen[pair].value - of.pairs[pair].first_strategy.value;
    };
    const std::size_t shift = graph.pairs.size() - alone.pairs.size();
    for (std::size_t pair = 0; pair < alone.pairs.size(); ++pair) {
      CHECK(strategy(alone, of_alone, pair) == strategy(graph, one, pair));
      CHECK(strategy(alone, of_alone, pair) == strategy(graph, one, shift + pair));
    }
    OrderEvaluator evaluator(graph);
    const Timeline timeline = evaluator.evaluate(one);
    const Timeline of_a = OrderEvaluator(alone).evaluate(of_alone);
    for (std::size_t pair = 0; pair < alone.pairs.size(); ++pair) {
      const Span span = of_a.spans[alone.pairs[pair].b.row()];
      CHECK(timeline.spans[graph.pairs[pair].b.row()] == span);
      CHECK(timeline.spans[graph.pairs[shift + pair].b.row()] == span);
    }
  }
}

TEST_CASE("dip plan: a stop ends an endless search soon") {
  const TaskGraph graph = replicas_of({multimodal(5, 800), multimodal(6, 800)});
  for (const auto make : {make_dip, make_dip_plus}) {
    std::stop_source source;
    DipOptions options = evaluations(100'000'000);
    options.stop = source.get_token();
    const auto start = std::chrono::steady_clock::now();
    const std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      source.request_stop();
    });
    CHECK_THROWS_AS(static_cast<void>(make(options)->order(graph)), Stopped);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  }
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
