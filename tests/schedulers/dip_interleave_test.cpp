// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/interleave.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/memory.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/schedulers/dip_cases.hpp"
#include "tests/schedulers/dip_graphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dipsim {

namespace {

using dip::Choice;
using dip::GroupOrder;
using dip::Index;
using dip::Interleaver;
using dip::MemoryLevel;
using dip::ReplicaGraph;
using test::keep;
using test::PipelineSpec;

/// One module, `microbatches` works of F 1 ns, B 2 ns and 1 byte held.
PipelineSpec plain(int ranks, int microbatches) {
  PipelineSpec spec;
  spec.ranks = ranks;
  for (int m = 0; m < microbatches; ++m) {
    spec.works.push_back(test::work(m, 0, {keep(1, 2, 1)}));
  }
  return spec;
}

/// "F0 B0 …": passes of one rank by microbatch, with "m1:" before those of modules other than 0.
std::string order_on(const TaskGraph& graph, const ReplicaGraph& replica,
                     std::span<const Index> sequence, Index rank) {
  std::string text;
  for (const Index pass : sequence) {
    if (replica.passes[pass].rank != rank) {
      continue;
    }
    const Task& task = graph.task(replica.tasks[pass]);
    const Work& work = graph.works[task.work.row()];
    text += text.empty() ? "" : " ";
    text += work.module.value == 0 ? "" : "m" + std::to_string(work.module.value) + ":";
    text += std::string(name_of(task.op)) + std::to_string(work.portions[0].microbatch.value);
  }
  return text;
}

/// Interleaves one replica whose strategies are the fastest of every pair.
struct Run {
  explicit Run(const PipelineSpec& spec)
      : graph(test::pipeline(spec)),
        replica(dip::replica_graphs(graph).front()),
        interleaver(replica),
        durations(replica.passes.size()) {
    const Choice choice(replica.pair_count(), 0);
    dip::set_durations(replica, choice, durations);
    level = dip::memory_level(replica, choice);
  }

  [[nodiscard]] std::string on(Index rank) const {
    return order_on(graph, replica, sequence, rank);
  }

  void run(const GroupOrder& order, const dip::InterleaveRule& rule = {}) {
    const auto result = interleaver.run(order, durations, level, level, rule);
    sequence.assign(result.begin(), result.end());
  }

  void run() { run(dip::natural_order(replica)); }

  TaskGraph graph;
  ReplicaGraph replica;
  Interleaver interleaver;
  std::vector<dip::Nanoseconds> durations;
  MemoryLevel level;
  std::vector<Index> sequence;
};

}  // namespace

TEST_CASE("dip interleave: directions alternate where both could start") {
  Run run(plain(1, 2));
  run.run();
  // F0 0-1; then F1 (ready at 0) and B0 (ready at 1) both could start: not forward again.
  CHECK(run.on(0) == "F0 B0 F1 B1");
  CHECK(run.interleaver.makespan() == 6);
}

TEST_CASE("dip interleave: with equal stages and enough memory it is as short as 1F1B") {
  // Rank 0: F0 0-1, F1 1-2, F2 2-3, then B0 4-6, B1 7-9, B2 10-12. 1F1B: (m + p - 1)(F + B) = 12.
  Run run(plain(2, 3));
  run.run();
  CHECK(run.on(0) == "F0 F1 F2 B0 B1 B2");
  CHECK(run.on(1) == "F0 B0 F1 B1 F2 B2");
  CHECK(run.interleaver.makespan() == 12);
}

TEST_CASE("dip interleave: a forward that would exceed the level waits for a backward") {
  PipelineSpec spec = plain(2, 3);
  SUBCASE("two fit") {
    spec.memory_limit = Bytes{2};
    Run run(spec);
    run.run();
    // Rank 0 after F1 at 2: F2 would be the third. B0 4-6, then F2 6-7 while B1 arrives at 7.
    CHECK(run.on(0) == "F0 F1 B0 F2 B1 B2");
    CHECK(run.interleaver.makespan() == 12);
  }
  SUBCASE("one fits") {
    spec.memory_limit = Bytes{1};
    Run run(spec);
    run.run();
    CHECK(run.on(0) == "F0 B0 F1 B1 F2 B2");
    CHECK(run.interleaver.makespan() == 3 * 6);  // one microbatch after the other
  }
}

TEST_CASE(
    "dip interleave: whole microbatches leave room for the forwards of those that have begun") {
  // An encoder feeds a second module; every pair holds 1 byte, so a microbatch 2 on each rank.
  PipelineSpec spec;
  spec.ranks = 2;
  spec.segments = {1, 1};
  spec.memory_limit = Bytes{4};
  spec.latency = Duration{10};
  for (int m = 0; m < 4; ++m) {
    for (const int module : {0, 1}) {
      spec.works.push_back(test::work(m, module, {keep(1, 2, 1)}));
    }
  }
  Run run(spec);
  run.run();
  CHECK(run.on(0).starts_with("F0 F1 F2 "));  // while m1:F0 has not arrived
  run.run(dip::natural_order(run.replica), {.whole_microbatches = true, .weights = {}});
  CHECK(run.on(0).starts_with("F0 F1 m1:F0 m1:F1 "));
  CHECK(run.sequence.size() == run.replica.passes.size());
  // All encoders before all else: what has begun still goes before what has no room.
  run.run({.forward = {0, 2, 4, 6, 1, 3, 5, 7}, .backward = {0, 1, 2, 3, 4, 5, 6, 7}},
          {.whole_microbatches = true, .weights = {}});
  CHECK(run.on(0).starts_with("F0 F1 m1:F0 m1:F1 "));
  CHECK(run.sequence.size() == run.replica.passes.size());
}

TEST_CASE("dip interleave: each direction follows its own priorities") {
  Run run(plain(1, 3));
  GroupOrder order;
  order.forward = {2, 0, 1};
  order.backward = {1, 0, 2};
  run.run(order);
  CHECK(run.on(0) == "F2 B2 F0 B0 F1 B1");  // only one backward is ever ready

  // With the forwards of rank 0 done early, rank 0 of two sees several backwards at once: make
  // its own backwards slow, so that they queue.
  PipelineSpec spec = plain(2, 3);
  Run two(spec);
  for (Index pass = 0; pass < two.replica.passes.size(); ++pass) {
    const bool first_rank = two.replica.passes[pass].rank == 0;
    const dip::Nanoseconds backward = first_rank ? 20 : 2;
    two.durations[pass] = two.replica.is_forward(pass) ? 1 : backward;
  }
  two.run({.forward = {0, 1, 2}, .backward = {2, 1, 0}});
  // B0 arrives first and runs 4-24; by then both others are there, and 2 goes before 1.
  CHECK(two.on(0) == "F0 F1 F2 B0 B2 B1");
}

TEST_CASE("dip interleave: transfers queue on their link, and latency does not occupy it") {
  PipelineSpec spec = plain(2, 2);
  spec.occupied = Duration{5};
  spec.latency = Duration{3};
  Run run(spec);
  run.run();
  // Rank 0: F0 0-1, F1 1-2. Link 0→1: 1-6 and 6-11, arrivals 9 and 14.
  // Rank 1: F0 9-10, B0 10-12, F1 14-15, B1 15-17. Link 1→0: 12-17, 17-22; arrivals 20 and 25.
  // Rank 0: B0 20-22, B1 25-27.
  CHECK(run.interleaver.makespan() == 27);
}

TEST_CASE("dip interleave: a deeper segment goes before a new microbatch of lower priority") {
  PipelineSpec spec;
  spec.ranks = 1;
  spec.segments = {1, 1};
  for (int m = 0; m < 2; ++m) {
    spec.works.push_back(test::work(m, 0, {keep(1, 2, 1)}));
    spec.works.push_back(test::work(m, 1, {keep(1, 2, 1)}));
  }
  Run run(spec);
  run.run();
  // The encoder's forward of 0 has ended at 1: the backbone's forward of 0 outranks F1.
  CHECK(run.on(0) == "F0 m1:F0 m1:B0 F1 B0 m1:F1 m1:B1 B1");
}

TEST_CASE("dip interleave: no pair limit deadlocks a multimodal order that fits one microbatch") {
  // Four encoder slices fill a rank with three places before the backbone's forward arrives.
  PipelineSpec spec;
  spec.ranks = 2;
  spec.segments = {1, 1};
  for (int m = 0; m < 4; ++m) {
    spec.works.push_back(test::work(m, 0, {keep(1, 2, 1)}));
    spec.works.push_back(test::work(m, 1, {keep(1, 2, 1)}));
  }
  spec.memory_limit = Bytes{2};  // exactly one microbatch: encoder and backbone
  Run run(spec);
  GroupOrder order = dip::natural_order(run.replica);
  std::ranges::partition(order.forward, [](Index group) { return group % 2 == 0; });
  run.run(order);  // all encoders first: the worst order for this limit
  CHECK(run.sequence.size() == run.replica.passes.size());
}

TEST_CASE("dip interleave: what fits no microbatch is infeasible and names rank and bytes") {
  PipelineSpec spec = plain(2, 2);
  spec.memory_limit = Bytes{0};
  Run run(spec);
  CHECK_FALSE(dip::fits(run.level));
  try {
    dip::require_fit(run.graph, run.replica, run.level);
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::Infeasible);
    CHECK(error.where() == "rank 0");
    CHECK(error.message().find("1 bytes too little") != std::string::npos);
  }
}

namespace {

/// A random multimodal pipeline: 2–4 ranks, two modules, 0–3 encoder slices per microbatch, three
/// strategies with random costs.
PipelineSpec random_pipeline(RandomStream& random) {
  PipelineSpec spec;
  spec.ranks = static_cast<int>(random.integer(2, 4));
  spec.segments = {static_cast<int>(random.integer(1, 3)), static_cast<int>(random.integer(1, 2))};
  spec.occupied = Duration{random.integer(0, 20)};
  spec.latency = Duration{random.integer(0, 20)};
  const auto strategies = [&] {
    const std::int64_t f = random.integer(1, 100);
    const std::int64_t held = random.integer(1, 20);
    return std::vector<Strategy>{
        test::strategy(RecomputeMode::Keep, f, 2 * f, 4 * held),
        test::strategy(RecomputeMode::Selective, f, 2 * f + f / 4, 2 * held, held),
        test::strategy(RecomputeMode::Full, f, 3 * f, held, 3 * held)};
  };
  const auto microbatches = static_cast<int>(random.integer(1, 7));
  for (int m = 0; m < microbatches; ++m) {
    for (std::int64_t s = random.integer(0, 3); s > 0; --s) {
      spec.works.push_back(test::work(m, 0, strategies()));
      spec.works.back().has_backward = random.integer(0, 9) > 0;
    }
    spec.works.push_back(test::work(m, 1, strategies()));
  }
  return spec;
}

}  // namespace

TEST_CASE("dip interleave: any order at any level is a legal schedule inside the hard limit") {
  std::size_t complete = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip interleave");
    PipelineSpec spec = random_pipeline(random);
    // The tightest limit that is feasible, or a little above it.
    const dip::ByteCount limit = test::tightest_limit(test::pipeline(spec));
    spec.memory_limit = Bytes{limit + (seed % 2 == 0 ? 0 : random.integer(0, 100))};

    const TaskGraph graph = test::pipeline(spec);
    const ReplicaGraph replica = dip::replica_graphs(graph).front();
    const Choice saving = dip::most_saving_choice(replica);
    const MemoryLevel hard = dip::memory_level(replica, saving);
    REQUIRE(dip::fits(hard));
    const auto mode = static_cast<RecomputeMode>(seed % 3);
    const MemoryLevel soft = dip::memory_level(replica, dip::uniform_choice(replica, mode));
    std::vector<dip::Nanoseconds> durations(replica.passes.size());
    dip::set_durations(replica, saving, durations);

    Interleaver interleaver(replica);
    for (int repeat = 0; repeat < 3; ++repeat) {  // the workspace carries nothing over
      const auto sequence =
          interleaver.run(test::random_groups(replica, random), durations, soft, hard,
                          {.whole_microbatches = repeat == 1, .weights = {}});
      if (sequence.empty()) {  // allowed where a microbatch alone needs nearly everything
        CHECK_FALSE(test::fits_easily(hard));
        continue;
      }
      REQUIRE(sequence.size() == replica.passes.size());
      ++complete;
      const Schedule schedule = test::schedule_of(graph, replica, sequence, saving);
      CHECK_NOTHROW(validate(graph, schedule));
      const Timeline timeline = OrderEvaluator(graph).evaluate(schedule);
      CHECK(timeline.makespan.count() == interleaver.makespan());
      for (const MemoryCurve& curve : timeline.memory) {
        CHECK(curve.peak <= spec.memory_limit);
      }
    }
  }
  CHECK(complete > 700);
}

TEST_CASE("dip interleave: a transfer that feeds two passes occupies its link once") {
  PipelineSpec spec = plain(2, 2);
  spec.occupied = Duration{5};
  spec.latency = Duration{3};
  TaskGraph graph = test::pipeline(spec);
  // The forward of microbatch 1 on rank 1 needs the result of microbatch 0 as well.
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (graph.tasks[t].op == Op::Transfer && graph.tasks[t].rank == RankId{0} &&
        graph.tasks[t].work == WorkId{0}) {
      graph.edges.push_back({TaskId(t), graph.pairs[3].f});
    }
  }
  REQUIRE(graph.task(graph.pairs[3].f).work == WorkId{1});
  const ReplicaGraph replica = dip::replica_graphs(graph).front();
  const Choice choice(replica.pair_count(), 0);
  std::vector<dip::Nanoseconds> durations(replica.passes.size());
  dip::set_durations(replica, choice, durations);
  const MemoryLevel level = dip::memory_level(replica, choice);
  Interleaver interleaver(replica);
  const auto sequence = interleaver.run(dip::natural_order(replica), durations, level, level);
  CHECK(interleaver.makespan() == 27);  // as without the extra target: its inputs come in order
  const Schedule schedule = test::schedule_of(graph, replica, sequence, choice);
  CHECK(OrderEvaluator(graph).evaluate(schedule).makespan == Duration{27});
}

TEST_CASE("dip interleave: equal inputs give equal orders, whatever ran before") {
  RandomStream random(7, "dip interleave again");
  const PipelineSpec spec = random_pipeline(random);
  Run fresh(spec);
  fresh.run();
  Run used(spec);
  used.run(test::random_groups(used.replica, random));
  used.run();
  CHECK(used.sequence == fresh.sequence);
}

TEST_CASE("dip interleave: scaling all durations scales the makespan") {
  RandomStream random(11, "dip interleave scale");
  Run run(random_pipeline(random));
  // Without transfers, which would not scale along.
  for (dip::Hop& hop : run.replica.hops) {
    hop.occupied = 0;
    hop.latency = 0;
  }
  run.run();
  const auto before = run.interleaver.makespan();
  for (dip::Nanoseconds& duration : run.durations) {
    duration *= 7;
  }
  run.run();
  CHECK(run.interleaver.makespan() == 7 * before);
}

}  // namespace dipsim
