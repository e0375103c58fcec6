// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/memory_contents.hpp"

#include "sim/graph/memory.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/graph_builder.hpp"
#include "tests/support/random_case.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dipsim {
namespace {

using test::at;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::RandomCase;
using test::split;

constexpr RankId kRank0{0};

/// One rank with weights and a split pair that uses everything: F 0 to 10, I 20 to 40, W 60 to 65.
struct OnePair {
  GraphBuilder g{1};
  PairId pair;
  Schedule schedule;
  std::vector<Span> spans = {{at(0), at(10)}, {at(20), at(40)}, {at(60), at(65)}};

  OnePair() {
    Strategy strategy = split(10, 20, 5);
    strategy.f_to_i = Bytes{100};
    strategy.i_to_w = Bytes{30};
    strategy.rebuilt = Bytes{50};
    pair = g.add_pair(kRank0, Passes::Split, strategy);
    for (const TaskId pass : {g.f(pair), g.i(pair), g.w(pair)}) {
      g.graph.tasks[pass.row()].transient = Bytes{7};
    }
    g.graph.placement.ranks[0].reserved = Bytes{1'000};
    Chunk& chunk = g.graph.placement.chunks[0];
    chunk.weights = Bytes{20'000};
    chunk.gradients = Bytes{300'000};
    chunk.optimizer = Bytes{4'000'000};
    schedule = g.schedule({{g.f(pair), g.i(pair), g.w(pair)}});
  }

  [[nodiscard]] MemoryContents at_time(std::int64_t time) const {
    const std::vector<Time> instant = {at(time)};
    return memory_contents(g.graph, schedule, spans, instant)[0];
  }
};

MemoryContents fixed_part() {
  return {.weights = Bytes{20'000},
          .gradients = Bytes{300'000},
          .optimizer = Bytes{4'000'000},
          .reserved = Bytes{1'000}};
}

TEST_CASE("memory is named by what it holds at the instant") {
  const OnePair one;
  MemoryContents expected = fixed_part();
  CHECK(one.at_time(70) == expected);
  expected.activations = Bytes{100};
  CHECK(one.at_time(10) == expected);
  expected.scratch = Bytes{7};
  CHECK(one.at_time(0) == expected);
  expected.rebuilt = Bytes{50};
  CHECK(one.at_time(20) == expected);
  expected = fixed_part();
  expected.kept_for_w = Bytes{30};
  CHECK(one.at_time(40) == expected);
  expected.scratch = Bytes{7};
  CHECK(one.at_time(60) == expected);
}

TEST_CASE("the pass that runs at an instant is named, and none where the rank idles") {
  const OnePair one;
  const auto pass = [&](std::int64_t time) {
    const std::vector<Time> instant = {at(time)};
    return passes_at(one.g.graph, one.spans, instant)[0];
  };
  CHECK(pass(0) == one.g.f(one.pair));
  CHECK_FALSE(pass(10).valid());
  CHECK(pass(39) == one.g.i(one.pair));
  CHECK(pass(64) == one.g.w(one.pair));
  CHECK_FALSE(pass(65).valid());
}

TEST_CASE("each phase of a rank has the most that it holds there") {
  const OnePair one;
  Timeline timeline = summarize(one.g.graph, one.spans);
  timeline.memory = memory_curves(one.g.graph, one.schedule, one.spans);
  const auto total = [&](MemoryPhase phase) -> std::optional<std::int64_t> {
    const auto contents = phase_contents(one.g.graph, one.schedule, timeline, phase)[0];
    return contents ? std::optional(contents->total().count - fixed_part().total().count)
                    : std::nullopt;
  };
  CHECK(total(MemoryPhase::Static) == 0);
  CHECK(total(MemoryPhase::WarmUp) == 107);
  CHECK_FALSE(total(MemoryPhase::Steady).has_value());  // the last F ends before the first I
  CHECK(total(MemoryPhase::CoolDown) == 157);
  CHECK(total(MemoryPhase::Optimizer) == 0);
}

TEST_CASE(
    "what is gathered for a pass is told from its scratch, there and beside the pass before") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, test::fused(10, 0));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, test::fused(10, 0));
  const TaskId gather = g.add_task(Op::Gather, Lane::Comm, kRank0, ns(4));
  g.graph.tasks[gather.row()].bytes = Bytes{40};
  g.add_edge(gather, g.f(b));
  g.graph.tasks[g.f(a).row()].transient = Bytes{43};
  g.graph.tasks[g.f(b).row()].transient = Bytes{45};
  const Schedule schedule = g.schedule({{g.f(a), g.f(b)}});
  const std::vector<Span> spans = {{at(0), at(10)}, {at(10), at(20)}, {at(0), at(4)}};
  const auto contents = [&](std::int64_t time) {
    const std::vector<Time> instant = {at(time)};
    return memory_contents(g.graph, schedule, spans, instant)[0];
  };
  CHECK(contents(0) == MemoryContents{.scratch = Bytes{3}, .gathered = Bytes{40}});
  CHECK(contents(10) == MemoryContents{.scratch = Bytes{5}, .gathered = Bytes{40}});
}

TEST_CASE("contents add up to the memory curve at every instant, on any graph") {
  rc::check([] {
    test::CaseShape shape;
    shape.ranks = *rc::gen::inRange<std::size_t>(1, 5);
    shape.pairs = *rc::gen::inRange<std::size_t>(1, 20);
    shape.offloads = *rc::gen::arbitrary<bool>();
    const RandomCase random = random_case(shape, *rc::gen::arbitrary<std::uint64_t>());
    const Timeline timeline = OrderEvaluator(random.graph).evaluate(random.schedule);
    for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
      for (const MemoryPoint& point : timeline.memory[r].points) {
        const std::vector<Time> instants(timeline.memory.size(), point.at);
        const auto contents =
            memory_contents(random.graph, random.schedule, timeline.spans, instants);
        RC_ASSERT(contents[r].total() == point.held);
      }
    }
    // The phases cover the iteration: the peak is that of one of them.
    std::vector<Bytes> most(timeline.memory.size());
    for (std::size_t phase = 0; phase < kMemoryPhases.size(); ++phase) {
      const auto contents =
          phase_contents(random.graph, random.schedule, timeline, static_cast<MemoryPhase>(phase));
      for (std::size_t r = 0; r < contents.size(); ++r) {
        most[r] = contents[r] ? std::max(most[r], contents[r]->total()) : most[r];
      }
    }
    for (std::size_t r = 0; r < most.size(); ++r) {
      RC_ASSERT(most[r] == timeline.memory[r].peak);
    }
  });
}

}  // namespace
}  // namespace dipsim
