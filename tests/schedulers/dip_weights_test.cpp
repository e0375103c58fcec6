// SPDX-License-Identifier: Apache-2.0
// The interleaver with weight passes.
#include "schedulers/dip/interleave.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/bound.hpp"
#include "tests/schedulers/dip_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace dipsim {

namespace {

using dip::Choice;
using dip::Index;
using dip::Interleaver;
using dip::MemoryLevel;
using dip::PassKind;
using dip::ReplicaGraph;
using dip::WeightRule;
using test::PipelineSpec;

constexpr int kNoLimit = std::numeric_limits<int>::max();

/// One module, each microbatch one work with a split backward.
PipelineSpec split_pipeline(int ranks, int microbatches, const Strategy& strategy) {
  PipelineSpec spec;
  spec.ranks = ranks;
  for (int m = 0; m < microbatches; ++m) {
    spec.works.push_back(test::work(m, 0, {strategy}));
    spec.works.back().split = true;
  }
  return spec;
}

Strategy plain(std::int64_t f, std::int64_t i, std::int64_t w, std::int64_t held = 0,
               std::int64_t kept = 0) {
  return test::split_strategy(RecomputeMode::Keep, f, i, w, held, kept);
}

/// Natural order, first strategies.
struct Run {
  Run(const PipelineSpec& spec, const WeightRule& rule)
      : graph(test::pipeline(spec)),
        replica(dip::replica_graphs(graph).front()),
        interleaver(replica) {
    const Choice choice(replica.pair_count(), 0);
    std::vector<dip::Nanoseconds> durations(replica.passes.size());
    dip::set_durations(replica, choice, durations);
    const MemoryLevel level = dip::memory_level(replica, choice);
    const auto result =
        interleaver.run(dip::natural_order(replica), durations, level, level, {.weights = rule});
    sequence.assign(result.begin(), result.end());
  }

  /// "F0 I0 W0 …": the passes of a rank by microbatch.
  [[nodiscard]] std::string on(Index rank) const {
    std::string text;
    for (const Index pass : sequence) {
      if (replica.passes[pass].rank == rank) {
        const Task& task = graph.task(replica.tasks[pass]);
        const Work& work = graph.works[task.work.row()];
        text += text.empty() ? "" : " ";
        text += std::string(name_of(task.op)) + std::to_string(work.portions[0].microbatch.value);
      }
    }
    return text;
  }

  TaskGraph graph;
  ReplicaGraph replica;
  Interleaver interleaver;
  std::vector<Index> sequence;
};

/// Most W that wait on a rank when it starts something else.
int longest_wait(const ReplicaGraph& replica, std::span<const Index> sequence) {
  std::vector<int> waiting(replica.ranks.size(), 0);
  int longest = 0;
  for (const Index pass : sequence) {
    const Index rank = replica.passes[pass].rank;
    if (replica.is_weight(pass)) {
      --waiting[rank];
      continue;
    }
    longest = std::max(longest, waiting[rank]);
    waiting[rank] += replica.kind(pass) == PassKind::Backward &&
                             replica.weight[replica.passes[pass].pair] != ReplicaGraph::kNone
                         ? 1
                         : 0;
  }
  return longest;
}

/// Whether the W of every rank run in the order of their I.
bool oldest_first(const ReplicaGraph& replica, std::span<const Index> sequence) {
  std::vector<std::vector<Index>> backwards(replica.ranks.size());
  std::vector<std::vector<Index>> weights(replica.ranks.size());
  for (const Index pass : sequence) {
    const Index pair = replica.passes[pass].pair;
    if (replica.weight[pair] != ReplicaGraph::kNone && !replica.is_forward(pass)) {
      (replica.is_weight(pass) ? weights : backwards)[replica.passes[pass].rank].push_back(pair);
    }
  }
  return weights == backwards;
}

}  // namespace

TEST_CASE("dip weights: as many wait as the rule permits, the oldest goes first") {
  // One rank, everything there from the start: no idle time, so only the backlog starts them.
  const PipelineSpec spec = split_pipeline(1, 4, plain(2, 2, 1));
  const auto order = [&](int backlog) { return Run(spec, {.backlog = backlog, .fit = 0.5}).on(0); };
  CHECK(order(0) == "F0 I0 W0 F1 I1 W1 F2 I2 W2 F3 I3 W3");
  CHECK(order(1) == "F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3");
  CHECK(order(2) == "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
  CHECK(order(kNoLimit) == "F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3");
}

TEST_CASE("dip weights: one starts when the idle time is at least its share, not one ns below") {
  // Rank 0: F0 0-10, F1 10-20. Rank 1: F0 110-120, I0 120-130, F1 130-140, I1 140-150. Back on
  // rank 0: I0 230-240, and I1 arrives at 250: a gap of 10, known since 150.
  const auto run = [](std::int64_t w, double fit) {
    PipelineSpec spec = split_pipeline(2, 2, plain(10, 10, w));
    spec.latency = Duration{100};
    return Run(spec, {.backlog = kNoLimit, .fit = fit});
  };
  const auto fills = [&](std::int64_t w, double fit) {
    const std::string order = run(w, fit).on(0);
    REQUIRE((order == "F0 F1 I0 W0 I1 W1" || order == "F0 F1 I0 I1 W0 W1"));
    return order == "F0 F1 I0 W0 I1 W1";
  };
  CHECK(fills(9, 1.0));
  CHECK(fills(10, 1.0));
  CHECK_FALSE(fills(11, 1.0));
  CHECK(fills(20, 0.5));
  CHECK_FALSE(fills(21, 0.5));
  CHECK(fills(40, 0.25));
  CHECK_FALSE(fills(41, 0.25));
  CHECK_FALSE(fills(1000, 0.5));
  // W0 240-250, I1 250-260, W1; W0 240-260, I1 260-270, W1; I1 250-260, W0, W1.
  CHECK(run(10, 1.0).interleaver.makespan() == 270);
  CHECK(run(20, 0.5).interleaver.makespan() == 290);
  CHECK(run(21, 0.5).interleaver.makespan() == 302);
}

TEST_CASE("dip weights: what becomes known meanwhile takes back the gap that one was to fill") {
  PipelineSpec spec = split_pipeline(2, 2, plain(2, 2, 50));
  spec.works[1].strategies = {plain(4, 2, 50)};
  spec.latency = Duration{3};
  // Rank 0: F0 0-2, F1 2-6. Rank 1: F0 5-7, I0 7-9, F1 9-13. Rank 0: I0 12-14; then nothing is on
  // its way, and W0 is to start at 14. But at 13 rank 1 begins I1, which arrives at 18: 4 ns are no
  // gap for 50.
  const Run run(spec, {.backlog = kNoLimit, .fit = 0.5});
  CHECK(run.on(0) == "F0 F1 I0 I1 W0 W1");
  CHECK(run.on(1) == "F0 I0 F1 I1 W0 W1");
}

TEST_CASE("dip weights: without another pass to come they run at once") {
  const Run run(split_pipeline(3, 1, plain(5, 7, 11)), {.backlog = kNoLimit, .fit = 1.0});
  // F 0-5-10-15, I 15-22-29-36, and each W right after its I.
  CHECK(run.interleaver.makespan() == 36 + 11);
  for (Index rank = 0; rank < 3; ++rank) {
    CHECK(run.on(rank) == "F0 I0 W0");
  }
}

TEST_CASE("dip weights: what I leaves behind makes W go first where memory is short") {
  // A pair holds 4, and 10 from I to W. One rank; two pairs at a time fit when W follows at once.
  PipelineSpec spec = split_pipeline(1, 3, plain(10, 10, 10, 4, 10));
  const auto order = [&](std::int64_t limit) {
    spec.memory_limit = Bytes{limit};
    return Run(spec, {.backlog = kNoLimit, .fit = 0.5}).on(0);
  };
  // I0 leaves 10 until W0 has run; F1 beside it would make 14.
  CHECK(order(10) == "F0 I0 W0 F1 I1 W1 F2 I2 W2");
  CHECK(order(13) == order(10));
  // F1 goes first, but I1 would leave another 10.
  CHECK(order(14) == "F0 I0 F1 W0 I1 F2 W1 I2 W2");
  CHECK(order(19) == order(14));
  CHECK(order(20) == "F0 I0 F1 I1 W0 F2 I2 W1 W2");
  CHECK(order(30) == "F0 I0 F1 I1 F2 I2 W0 W1 W2");
}

TEST_CASE("dip weights: any order at any level keeps to backlog, precedence and the hard limit") {
  std::size_t waited = 0;
  std::size_t complete = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip weights");
    TaskGraph graph = test::random_graph(random, {.queueing = seed % 2 == 0,
                                                  .split = true,
                                                  .all_split = seed % 3 == 0,
                                                  .twins = seed % 5 == 0});
    for (Task& task : graph.tasks) {
      if (task.op == Op::W) {
        task.transient = Bytes{random.integer(0, 20)};
      }
    }
    // The least limit at which one microbatch after the other fits, or somewhat above it.
    test::set_limit(graph,
                    test::tightest_limit(graph) + (seed % 4 == 0 ? 0 : random.integer(0, 200)));
    const Bytes limit = graph.placement.ranks.front().memory_limit;
    const ReplicaGraph replica = dip::replica_graphs(graph).front();
    const Choice saving = dip::most_saving_choice(replica);
    const MemoryLevel hard = dip::memory_level(replica, saving);
    REQUIRE(dip::fits(hard));
    const MemoryLevel soft =
        dip::memory_level(replica, dip::uniform_choice(replica, RecomputeMode(seed % 3)));
    std::vector<dip::Nanoseconds> durations(replica.passes.size());
    dip::set_durations(replica, saving, durations);

    Interleaver interleaver(replica);
    for (const int backlog : {0, 1, 2, 4, kNoLimit}) {
      CAPTURE(backlog);
      const WeightRule rule{.backlog = backlog, .fit = 0.25 * double(random.integer(1, 4))};
      const auto sequence =
          interleaver.run(test::random_groups(replica, random), durations, soft, hard,
                          {.soft_share = 0.25 * double(random.integer(1, 4)), .weights = rule});
      if (sequence.empty()) {  // allowed where a microbatch alone needs nearly everything
        CHECK_FALSE(test::fits_easily(hard));
        continue;
      }
      REQUIRE(test::follows_precedence(replica, sequence));
      ++complete;
      CHECK(longest_wait(replica, sequence) <= backlog);
      CHECK(oldest_first(replica, sequence));
      waited += longest_wait(replica, sequence) > 1 ? 1U : 0U;
      const Schedule schedule = test::schedule_of(graph, replica, sequence, saving);
      CHECK_NOTHROW(validate(graph, schedule));
      const Timeline timeline = OrderEvaluator(graph).evaluate(schedule);
      CHECK(timeline.makespan.count() == interleaver.makespan());
      CHECK(test::peak_of(timeline) <= limit);
    }
  }
  CHECK(waited > 100);
  CHECK(complete > 900);
}

TEST_CASE("dip weights: one microbatch never takes longer split than whole") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip weights one microbatch");
    const auto ranks = static_cast<int>(random.integer(1, 5));
    PipelineSpec spec = split_pipeline(
        ranks, 1, plain(random.integer(1, 50), random.integer(1, 50), random.integer(1, 50)));
    spec.segments = {static_cast<int>(random.integer(1, 3))};
    spec.latency = Duration{random.integer(0, 30)};
    spec.occupied = Duration{random.integer(0, 30)};
    PipelineSpec whole = spec;
    whole.works.front().split = false;
    // Nothing else runs: I passes wait for nothing but each other.
    const WeightRule rule{.backlog = kNoLimit, .fit = 1.0};
    const Run split(spec, rule);
    CHECK(split.interleaver.makespan() <= Run(whole, rule).interleaver.makespan());
    CHECK(split.interleaver.makespan() >= lower_bound(split.graph).makespan.count());
  }
}

}  // namespace dipsim
