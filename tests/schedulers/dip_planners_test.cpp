// SPDX-License-Identifier: Apache-2.0
// dip, dip-plus and dip-zb: what holds for all three, and between them.
#include "schedulers/dip/backward_views.hpp"
#include "schedulers/dip/partition.hpp"
#include "schedulers/dip/plan_replica.hpp"
#include "schedulers/dip/planner.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/bound.hpp"
#include "tests/schedulers/dip_cases.hpp"
#include "tests/schedulers/dip_costs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dipsim {

namespace {

using dip::ByteCount;
using dip::ReplicaGraph;
using test::PipelineShape;
using test::PipelineSpec;

using Make = std::unique_ptr<Planner> (*)(const DipOptions&);
constexpr std::array<Make, 3> kPlanners = {make_dip, make_dip_plus, make_dip_zb};

DipOptions with(std::size_t evaluations, std::size_t jobs = 1) {
  DipOptions options;
  options.evaluations = evaluations;
  options.jobs = jobs;
  return options;
}

Duration makespan(const TaskGraph& graph, const Schedule& schedule) {
  return OrderEvaluator(graph).evaluate(schedule).makespan;
}

/// Legal, inside every limit, not below the bound. Returns the makespan.
Duration check_schedule(const TaskGraph& graph, const Schedule& schedule) {
  CHECK_NOTHROW(validate(graph, schedule));
  const Timeline timeline = OrderEvaluator(graph).evaluate(schedule);
  CHECK(timeline.makespan >= lower_bound(graph).makespan);
  for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
    CHECK(timeline.memory[r].peak <= graph.placement.ranks[r].memory_limit);
  }
  return timeline.makespan;
}

/// Whole backwards, split ones, or split ones with twins.
TaskGraph random_graph(std::uint64_t seed) {
  RandomStream random(seed, "dip planners");
  return test::random_graph(random, {.ranks = 3,
                                     .microbatches = 5,
                                     .queueing = seed % 2 == 0,
                                     .all_split = seed % 3 > 0,
                                     .twins = seed % 3 == 2});
}

/// All ranks may hold `room` bytes beside what they always hold.
void set_room(TaskGraph& graph, ByteCount room) {
  const std::vector<Bytes> fixed = static_memory(graph.placement);
  for (std::size_t r = 0; r < fixed.size(); ++r) {
    graph.placement.ranks[r].memory_limit = fixed[r] + Bytes{room};
  }
}

/// A vision-language model by the paper's partition and the draft of a planner.
TaskGraph lowered(Make make, const test::HeadedCosts& costs, const Batch& batch) {
  DipOptions options;
  options.slice_sizes = {2, 4};
  options.max_segments = 2;
  const Placement placement =
      dip::place_modules(costs, dip::choose_partition(costs, batch, options));
  return costs.lower(make(options)->slice(placement, batch, costs), batch);
}

}  // namespace

TEST_CASE("dip planners: legal and within memory, from the tightest limit to plenty") {
  for (std::uint64_t seed = 0; seed < 18; ++seed) {
    CAPTURE(seed);
    TaskGraph graph = random_graph(seed);
    const ByteCount least = test::tightest_limit(graph);
    for (const ByteCount room : {least, least + least / 8, 2 * least, 100 * least}) {
      CAPTURE(room);
      set_room(graph, room);
      for (const Make make : kPlanners) {
        check_schedule(graph, make(with(40))->order(graph));
      }
    }
  }
}

TEST_CASE("dip planners: so are they without memory choice, or with a budget in time") {
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    CAPTURE(seed);
    TaskGraph graph = random_graph(seed + 300);
    const ByteCount least = test::tightest_limit(graph);
    for (const ByteCount room : {least, 2 * least, 100 * least}) {
      CAPTURE(room);
      set_room(graph, room);
      for (const Make make : kPlanners) {
        DipOptions options = with(20);
        options.memory_choice = false;
        check_schedule(graph, make(options)->order(graph));
      }
    }
    DipOptions options = with(1'000'000);
    options.time = std::chrono::milliseconds{2};
    check_schedule(graph, kPlanners[seed % 3](options)->order(graph));
  }
}

TEST_CASE("dip planners: Megatron's order stands in for the interleaver on split backwards too") {
  for (const bool split : {false, true}) {
    CAPTURE(split);
    PipelineSpec spec;
    spec.ranks = 2;
    spec.segments = {2};
    for (int m = 0; m < 4; ++m) {
      spec.works.push_back(
          test::work(m, 0, {test::split_strategy(RecomputeMode::Keep, 10, 10, 10, 3, 2)}));
      spec.works.back().split = split;
    }
    const TaskGraph graph = test::pipeline(spec);
    DipOptions options = with(0);
    options.interleaver = false;
    const Duration time = check_schedule(graph, make_dip(options)->order(graph));
    // m v (F + B) + (p - 1)(F + B) of interleaved 1F1B; less where the gradient need not wait for
    // W.
    CHECK((split ? time <= Duration{270} : time == Duration{270}));
  }
}

TEST_CASE("dip planners: below the tightest limit they say so") {
  TaskGraph graph = random_graph(3);  // whole backwards
  set_room(graph, test::tightest_limit(graph) - 1);
  for (const Make make : kPlanners) {
    try {
      static_cast<void>(make(with(10))->order(graph));
      FAIL("expected an error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::Infeasible);
      CHECK(error.message().find("1 bytes too little") != std::string::npos);
    }
  }
}

TEST_CASE("dip planners: the plan does not depend on the number of threads") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    TaskGraph graph = random_graph(seed + 100);
    set_room(graph, 2 * test::tightest_limit(graph));
    for (const Make make : kPlanners) {
      const Schedule alone = make(with(60, 1))->order(graph);
      CHECK(make(with(60, 1))->order(graph) == alone);
      CHECK(make(with(60, 2))->order(graph) == alone);
      CHECK(make(with(60, 5))->order(graph) == alone);
    }
  }
}

TEST_CASE("dip planners: a search never makes it worse than the start, and mostly better") {
  std::size_t better = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    CAPTURE(seed);
    TaskGraph graph = random_graph(seed + 200);
    set_room(graph, 3 * test::tightest_limit(graph) / 2);
    for (const Make make : kPlanners) {
      const Duration start = makespan(graph, make(with(0))->order(graph));
      const Duration found = makespan(graph, make(with(120))->order(graph));
      CHECK(found <= start);
      better += found < start ? 1U : 0U;
    }
    // dip without evaluations is the natural order.
    CHECK(makespan(graph, make_dip_plus(with(0))->order(graph)) <=
          makespan(graph, make_dip(with(0))->order(graph)));
  }
  CHECK(better > 20);
}

TEST_CASE("dip-zb: never slower than dip-plus, and it fits wherever dip-plus fits") {
  // Both lowered by the planners' own drafts. A split pair keeps `kept` bytes per byte held from I
  // to W: beyond 1, splitting needs more memory than dip-plus does.
  std::size_t faster = 0;
  for (const std::int64_t kept : {0, 1, 4}) {
    CAPTURE(kept);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      CAPTURE(seed);
      test::HeadedCosts costs = test::vision_language_costs(2);
      costs.kept = kept;
      const Batch batch = test::vision_language_batch(seed, 3, 6);
      TaskGraph whole = lowered(make_dip_plus, costs, batch);
      TaskGraph split = lowered(make_dip_zb, costs, batch);
      REQUIRE(whole.placement.chunks == split.placement.chunks);
      REQUIRE(std::ranges::any_of(split.tasks, [](const Task& t) { return t.op == Op::W; }));
      const ByteCount least = test::tightest_limit(whole);
      for (const ByteCount room : {least, 5 * least / 4, 3 * least, 100 * least}) {
        CAPTURE(room);
        set_room(whole, room);
        set_room(split, room);
        const Duration plus = check_schedule(whole, make_dip_plus(with(60))->order(whole));
        const Duration zb = check_schedule(split, make_dip_zb(with(60))->order(split));
        CHECK(zb <= plus);
        faster += zb < plus ? 1U : 0U;
      }
    }
  }
  CHECK(faster > 20);
}

TEST_CASE("dip-zb: never worse than dip-plus on the whole backwards of the same graph") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip zb whole view");
    TaskGraph graph = test::random_graph(
        random,
        {.ranks = 3, .microbatches = 4, .queueing = seed % 2 == 0, .split = true, .twins = true});
    const ReplicaGraph roomy = dip::replica_graphs(graph).front();
    const ReplicaGraph whole_roomy = dip::whole_backwards(roomy)->graph;
    const dip::MemoryLevel needs =
        dip::memory_level(whole_roomy, dip::most_saving_choice(whole_roomy));
    // Every rank has just what whole backwards need there.
    for (std::size_t r = 0; r < needs.alone.size(); ++r) {
      graph.placement.ranks[r].memory_limit =
          Bytes{needs.alone[r] + (seed % 3 == 0 ? 0 : random.integer(0, 100))};
    }
    const ReplicaGraph replica = dip::replica_graphs(graph).front();
    const ReplicaGraph whole = dip::whole_backwards(replica)->graph;
    const DipOptions options = with(60);
    CHECK(dip::plan_split_by_descent(graph, replica, options).front().makespan <=
          dip::plan_by_descent(graph, whole, options).makespan);
  }
}

TEST_CASE("dip-zb: without idle time but the ramps where the zero-bubble orders have none") {
  // F, I and W of equal time, no transfers: ZB-H1 (arXiv 2401.10241, table 2) idles for
  // (p - 1)(F + I - W), and the first pass of the last rank can't start before (p - 1) F.
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const int microbatches = 2 * ranks;
    PipelineSpec spec;
    spec.ranks = ranks;
    for (int m = 0; m < microbatches; ++m) {
      spec.works.push_back(test::work(
          m, 0,
          test::with_twins({test::split_strategy(RecomputeMode::Keep, 100, 100, 100, 3, 2)})));
      spec.works.back().split = true;
    }
    const TaskGraph graph = test::pipeline(spec);
    const Duration best{100 * (3 * microbatches + ranks - 1)};
    CHECK(lower_bound(graph).makespan == best);
    CHECK(check_schedule(graph, make_dip_zb(with(300))->order(graph)) == best);
  }
}

TEST_CASE("dip planners: a replica without work is planned too") {
  RandomStream random(1, "dip planners empty replica");
  TaskGraph graph = test::random_graph(random, {});
  const std::size_t ranks = graph.placement.ranks.size();
  for (std::size_t r = 0; r < ranks; ++r) {
    Rank rank = graph.placement.ranks[r];
    rank.replica = 1;
    rank.cells = {CellId(graph.placement.cells.size())};
    graph.placement.cells.add_row();
    graph.placement.ranks.push_back(rank);
  }
  for (const Make make : kPlanners) {
    const Schedule schedule = make(with(20))->order(graph);
    check_schedule(graph, schedule);
    for (std::size_t cell = ranks; cell < 2 * ranks; ++cell) {
      CHECK(schedule.compute[cell].empty());
    }
  }
}

TEST_CASE("dip planners: what a search can't work with is an input error that names the field") {
  const auto rejects = [](auto change, const std::string& field) {
    DipOptions options;
    change(options);
    try {
      static_cast<void>(make_dip_zb(options));
    } catch (const Error& error) {
      return error.kind() == ErrorKind::Input && error.where() == "dip: " + field;
    }
    return false;
  };
  CHECK(rejects([](DipOptions& o) { o.weight_backlogs = {}; }, "weight_backlogs"));
  CHECK(rejects([](DipOptions& o) { o.weight_backlogs = {1, -1}; }, "weight_backlogs"));
  CHECK(rejects([](DipOptions& o) { o.tree.rollouts = 0; }, "tree"));
  CHECK(rejects([](DipOptions& o) { o.tree.leaves = 0; }, "tree"));
  CHECK_FALSE(rejects([](DipOptions& o) { o.weight_backlogs = {0}; }, "weight_backlogs"));
}

}  // namespace dipsim
