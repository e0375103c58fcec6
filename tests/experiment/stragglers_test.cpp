// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/stragglers.hpp"

#include "experiment/setup.hpp"
#include "experiment/single.hpp"
#include "experiment/synthetic_plan.hpp"
#include "report/stragglers.hpp"
#include "sim/engine/engine.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace dipsim {

namespace {

constexpr int kRanks = 4;
constexpr int kMicrobatches = 8;
constexpr Duration kForward = std::chrono::milliseconds(1);
constexpr Duration kBackward = std::chrono::milliseconds(2);  // I and W together

/// Two replicas of the same 1F1B pipeline, without transfer times.
PlanFile two_replicas(int replicas = 2) {
  SyntheticSpec spec;
  spec.ranks = kRanks;
  spec.microbatches = kMicrobatches;
  spec.replicas = replicas;
  return synthetic_plan(spec, parse_schedule("1f1b", "test"));
}

/// All passes of the replica take `factor` times as long.
void stretch(TaskGraph& graph, int replica, int factor) {
  for (Pair& pair : graph.pairs) {
    if (graph.rank(graph.task(pair.f).rank).replica == replica) {
      Strategy longer = graph.strategy(pair.first_strategy);
      longer.f *= factor;
      longer.b *= factor;
      pair.first_strategy = StrategyId(graph.strategies.size());
      graph.strategies.push_back(longer);
    }
  }
}

Rank& rank_at(TaskGraph& graph, int replica, int position) {
  for (Rank& rank : graph.placement.ranks) {
    if (rank.replica == replica && rank.position == position) {
      return rank;
    }
  }
  return graph.placement.ranks.front();
}

IterationResult run(const PlanFile& plan, const EngineOptions& engine = {}) {
  PlanRun run{.graph = plan.graph, .schedule = plan.schedule, .timeline = {}};
  for (std::size_t i = 0; i < run.graph.pairs.size(); ++i) {
    run.schedule.chosen[i] = run.graph.pairs[i].first_strategy;
  }
  run.timeline = simulate(run.graph, run.schedule, engine);
  return measure(run, {.engine = engine});
}

}  // namespace

TEST_CASE("a replica with twice the work lags by its work and by the longer ramp of the pipeline") {
  PlanFile plan = two_replicas();
  stretch(plan.graph, 1, 2);
  const IterationResult result = run(plan);
  REQUIRE(result.straggler.has_value());
  CHECK(result.straggler->replica == 1);
  CHECK(result.straggler->median == 0);
  CHECK(result.straggler->lag == (kMicrobatches + kRanks - 1) * (kForward + kBackward));
  CHECK(result.straggler->parts == ReplicaTime{.work = kMicrobatches * (kForward + kBackward),
                                               .pipeline = (kRanks - 1) * (kForward + kBackward)});
  CHECK(result.slow_ranks == Duration{0});
}

TEST_CASE("a replica with a rank at 0.8 lags by what that rank takes longer, and by nothing else") {
  // The last rank never waits once it has begun: m (F + B) / 0.8 there, the ramp as before.
  PlanFile plan = two_replicas();
  rank_at(plan.graph, 0, kRanks - 1).speed = 0.8;
  const IterationResult result = run(plan);
  const Duration longer = kMicrobatches * (kForward + kBackward) / 4;
  REQUIRE(result.straggler.has_value());
  CHECK(result.straggler->replica == 0);
  CHECK(result.straggler->lag == longer);
  CHECK(result.straggler->parts == ReplicaTime{.slow_ranks = longer});
  CHECK(result.slow_ranks == longer);
}

TEST_CASE("a slow rank in the replica that has less to do costs nothing") {
  PlanFile plan = two_replicas();
  stretch(plan.graph, 1, 2);
  rank_at(plan.graph, 0, 1).speed = 0.8;
  const IterationResult result = run(plan);
  REQUIRE(result.straggler.has_value());
  CHECK(result.straggler->replica == 1);
  CHECK(result.slow_ranks == Duration{0});
  CHECK(result.straggler->parts.slow_ranks < Duration{0});  // the other one is nearer for it
  CHECK(result.straggler->parts.total() == result.straggler->lag);
}

TEST_CASE("the lag of equal replicas under jitter is jitter alone") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const IterationResult result = run(two_replicas(3), {.jitter = 0.1, .seed = seed});
    REQUIRE(result.straggler.has_value());
    CHECK(result.straggler->lag > Duration{0});
    CHECK(result.straggler->parts == ReplicaTime{.jitter = result.straggler->lag});
  }
}

TEST_CASE("the parts of a lag add up to it exactly, whatever is mixed") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    PlanFile plan = two_replicas(5);
    stretch(plan.graph, 1, 3);
    rank_at(plan.graph, 1, 2).speed = 0.7;
    rank_at(plan.graph, 2, 0).speed = 0.37;
    rank_at(plan.graph, 3, 3).speed = 0.91;
    const IterationResult result =
        run(plan, {.host_issue = Duration{777}, .jitter = 0.2, .seed = seed});
    REQUIRE(result.straggler.has_value());
    CHECK(result.straggler->parts.total() == result.straggler->lag);
    CHECK(result.straggler->replica != result.straggler->median);
  }
}

TEST_CASE("one replica has no straggler, but its slow ranks cost what they cost") {
  PlanFile plan = two_replicas(1);
  rank_at(plan.graph, 0, kRanks - 1).speed = 0.5;
  const IterationResult result = run(plan);
  CHECK_FALSE(result.straggler.has_value());
  CHECK(result.slow_ranks == kMicrobatches * (kForward + kBackward));
}

TEST_CASE("slow GPUs of an experiment slow down their rank, and the report names it") {
  ExperimentSpec spec;
  spec.iterations = 1;
  spec.microbatches = 4;
  spec.dp = 2;
  spec.slow_gpus = {parse_speed_entry("5=0.8", "test"), parse_speed_entry("node1=0.5", "test"),
                    parse_speed_entry("33=0.5", "test")};
  const Setup setup = prepare(spec);
  // tp 4, replicas innermost but one: rank 0 has GPUs 0 to 3 of replica 0, replica 1 has 4 to 7.
  const std::vector<Rank>& ranks = setup.lowering->problem().ranks;
  for (const Rank& rank : ranks) {
    const int first = (rank.position * 2 + rank.replica) * 4;
    CAPTURE(first);
    CHECK(rank.speed == (first == 4 ? 0.8 : (first / 8 == 1 ? 0.5 : 1.0)));
  }
  REQUIRE(setup.warnings.size() == 1);
  CHECK(setup.warnings[0] == "GPU 33 is slow but takes no part: the plan has GPUs 0 to 31");

  ScheduleResult result{
      .name = "1f1b", .recompute = "keep", .notes = {}, .iterations = {}, .sample = {}};
  result.sample.graph.placement.ranks = ranks;
  result.sample.graph.placement.cells = setup.lowering->problem().cells;
  result.iterations.resize(1);
  result.iterations[0].straggler =
      Straggler{.replica = 1,
                .median = 0,
                .lag = std::chrono::milliseconds(30),
                .parts = {.work = std::chrono::milliseconds(10),
                          .slow_ranks = std::chrono::milliseconds(20)}};
  const std::vector<std::string> sentences = straggler_sentences(result, 1);
  REQUIRE(sentences.size() == 1);
  CHECK(sentences[0] ==
        "Under 1f1b, replica 1 of 2 ends last, 30.0 ms after the median replica 0: more work +10.0 "
        "ms, slower ranks +20.0 ms (rank 5, GPUs 12 to 15, at 0.5 of full speed; rank 4, GPUs 4 "
        "to 7, at 0.8 of full speed).");
}

TEST_CASE("an experiment's speeds go before those of the cluster, which may heal a GPU") {
  const std::vector<SlowGpu> own = {{.gpu = GpuId{1}, .speed = 0.5},
                                    {.gpu = GpuId{4}, .speed = 0.6}};
  const std::vector<SlowGpu> said = {{.gpu = GpuId{0}, .speed = 0.9},
                                     {.gpu = GpuId{4}, .speed = 1.0}};
  CHECK(with_speeds(own, said) ==
        std::vector<SlowGpu>{{.gpu = GpuId{0}, .speed = 0.9}, {.gpu = GpuId{1}, .speed = 0.5}});
}

TEST_CASE("speeds on the command line that mean nothing are refused with what is expected") {
  for (const char* const text : {"5", "=0.5", "5=", "5=0", "5=-1", "5=1.01", "5=nan", "5=0.5x",
                                 "node=0.5", "-1=0.5", "rank3=0.5", "99999999999=0.5"}) {
    CAPTURE(text);
    const Error error =
        test::error_of([&] { static_cast<void>(parse_speed_entry(text, "--slow")); });
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where() == "--slow");
    CHECK(error.message().find("17=0.8 or node2=0.9") != std::string::npos);
  }
}

}  // namespace dipsim
