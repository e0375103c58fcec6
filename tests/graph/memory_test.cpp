// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/memory.hpp"

#include "sim/graph/order_evaluator.hpp"
#include "tests/support/graph_builder.hpp"
#include "tests/support/random_case.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::at;
using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::RandomCase;
using test::split;

constexpr RankId kRank0{0};
constexpr RankId kRank1{1};

/// "TIME:BYTES TIME:BYTES …"
std::string text(const MemoryCurve& curve) {
  std::string out;
  for (const MemoryPoint& point : curve.points) {
    out += (out.empty() ? "" : " ") + std::to_string((point.at - kStart).count()) + ":" +
           std::to_string(point.held.count);
  }
  return out;
}

Strategy holding(Strategy strategy, std::int64_t f_to_i, std::int64_t i_to_w = 0,
                 std::int64_t rebuilt = 0) {
  strategy.f_to_i = Bytes{f_to_i};
  strategy.i_to_w = Bytes{i_to_w};
  strategy.rebuilt = Bytes{rebuilt};
  return strategy;
}

TEST_CASE("a fused pair holds its activations from the start of F to the end of B") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, holding(fused(10, 20), 100));
  const PairId b = g.add_pair(kRank0, Passes::Fused, holding(fused(10, 20), 7));
  g.graph.placement.ranks[0].reserved = Bytes{1000};
  const std::vector<Span> spans = {
      {at(0), at(10)}, {at(30), at(50)}, {at(10), at(20)}, {at(55), at(75)}};
  const auto curves = memory_curves(g.graph, g.schedule({{g.f(a), g.f(b), g.b(a), g.b(b)}}), spans);
  REQUIRE(curves.size() == 1);
  CHECK(text(curves[0]) == "0:1100 10:1107 50:1007 75:1000");
  CHECK(curves[0].fixed == Bytes{1000});
  CHECK(curves[0].peak == Bytes{1107});
  CHECK(curves[0].peak_at == at(10));
}

TEST_CASE("a split pair holds less between I and W, and rebuilt bytes during I only") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Split, holding(split(10, 20, 5), 100, 30, 50));
  const std::vector<Span> spans = {{at(5), at(15)}, {at(20), at(40)}, {at(60), at(65)}};
  const auto curves = memory_curves(g.graph, g.schedule({{g.f(a), g.i(a), g.w(a)}}), spans);
  CHECK(text(curves[0]) == "0:0 5:100 20:150 40:30 65:0");
  CHECK(curves[0].peak == Bytes{150});
  CHECK(curves[0].peak_at == at(20));
}

TEST_CASE("a frozen pair holds its activations during F only, or until the pass that reads them") {
  GraphBuilder g(1);
  g.add_pair(kRank0, Passes::ForwardOnly, holding(fused(10, 0), 100, 30, 50));
  const std::vector<Span> alone = {{at(5), at(15)}};
  CHECK(text(memory_curves(g.graph, g.schedule({{}}), alone)[0]) == "0:0 5:100 15:0");

  // A trained layer with nothing to train upstream: W without I.
  GraphBuilder first(1);
  const PairId a = first.add_pair(kRank0, Passes::Split, holding(split(10, 0, 5), 100));
  first.graph.pairs[a.row()].i = TaskId{};
  const std::vector<Span> with_w = {{at(5), at(15)}, {}, {at(20), at(25)}};
  CHECK(text(memory_curves(first.graph, first.schedule({{}}), with_w)[0]) == "0:0 5:100 25:0");

  // A frozen layer that passes gradients on: I without W.
  GraphBuilder middle(1);
  const PairId b = middle.add_pair(kRank0, Passes::Split, holding(split(10, 5, 0), 100, 30));
  middle.graph.pairs[b.row()].w = TaskId{};
  const std::vector<Span> with_i = {{at(5), at(15)}, {at(20), at(25)}, {}};
  CHECK(text(memory_curves(middle.graph, middle.schedule({{}}), with_i)[0]) == "0:0 5:100 25:0");
}

TEST_CASE("a task holds its transient bytes while it runs, whatever it does") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const TaskId gather = g.add_task(Op::Gather, Lane::Comm, kRank1, ns(4));
  g.graph.tasks[g.f(a).row()].transient = Bytes{40};
  g.graph.tasks[gather.row()].transient = Bytes{9};
  const std::vector<Span> spans = {{at(5), at(15)}, {at(2), at(6)}};
  const auto curves = memory_curves(g.graph, g.schedule({{g.f(a)}, {}}), spans);
  CHECK(text(curves[0]) == "0:0 5:40 15:0");
  CHECK(text(curves[1]) == "0:0 2:9 6:0");
}

TEST_CASE("at one instant what ends is released before what starts is taken") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, holding(fused(10, 20), 100));
  const PairId b = g.add_pair(kRank0, Passes::Fused, holding(fused(10, 20), 60));
  const std::vector<Span> spans = {
      {at(0), at(10)}, {at(10), at(30)}, {at(30), at(40)}, {at(40), at(60)}};
  const auto curves = memory_curves(g.graph, g.schedule({{g.f(a), g.b(a), g.f(b), g.b(b)}}), spans);
  CHECK(text(curves[0]) == "0:100 30:60 60:0");
  CHECK(curves[0].peak == Bytes{100});
  CHECK(curves[0].peak_at == at(0));
}

TEST_CASE("what lives for no time is never held") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, holding(fused(0, 0), 100));
  g.graph.tasks[g.f(a).row()].transient = Bytes{1000};
  const std::vector<Span> spans = {{at(5), at(5)}, {at(5), at(5)}};
  const auto curves = memory_curves(g.graph, g.schedule({{g.f(a), g.b(a)}}), spans);
  CHECK(text(curves[0]) == "0:0");
  CHECK(curves[0].peak == Bytes{0});
}

TEST_CASE("offloaded bytes are away from the end of CopyOut to the start of CopyIn") {
  GraphBuilder g(1);
  Strategy strategy = holding(fused(10, 20), 100);
  strategy.offload = Bytes{80};
  const PairId a = g.add_pair(kRank0, Passes::Fused, strategy);
  g.add_offload(a);
  const std::vector<Span> spans = {
      {at(0), at(10)}, {at(50), at(70)}, {at(10), at(16)}, {at(40), at(46)}};
  CHECK(text(memory_curves(g.graph, g.schedule({{g.f(a), g.b(a)}}), spans)[0]) ==
        "0:100 16:20 40:100 70:0");
  // Back before it was away: nothing is saved.
  const std::vector<Span> at_once = {
      {at(0), at(10)}, {at(50), at(70)}, {at(10), at(16)}, {at(16), at(22)}};
  CHECK(text(memory_curves(g.graph, g.schedule({{g.f(a), g.b(a)}}), at_once)[0]) == "0:100 70:0");
}

TEST_CASE("the chosen strategy decides what a pair holds") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused,
                              {holding(fused(10, 20), 100), holding(fused(10, 20), 10, 0, 90)});
  Schedule schedule = g.schedule({{g.f(a), g.b(a)}});
  schedule.chosen[0] = StrategyId(1);
  const std::vector<Span> spans = {{at(0), at(10)}, {at(20), at(50)}};
  CHECK(text(memory_curves(g.graph, schedule, spans)[0]) == "0:10 20:100 50:0");
}

TEST_CASE("in flight is a pair from the start of F to the end of its last pass") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::Split, split(10, 10, 10));
  const PairId b = g.add_pair(kRank0, Passes::Fused, fused(10, 10));
  const PairId c = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  std::vector<Span> spans(g.graph.tasks.size());
  const auto set = [&](TaskId task, std::int64_t from, std::int64_t to) {
    spans[task.row()] = {at(from), at(to)};
  };
  set(g.f(a), 0, 10);
  set(g.i(a), 20, 30);
  set(g.w(a), 40, 50);
  set(g.f(b), 10, 20);
  set(g.b(b), 30, 40);
  set(g.f(c), 40, 50);  // b has ended, a has not
  CHECK(peak_in_flight(g.graph, spans) == std::vector<int>{2, 0});
  set(g.f(c), 39, 49);
  CHECK(peak_in_flight(g.graph, spans) == std::vector<int>{3, 0});
}

TEST_CASE("a pair that starts when another one ends does not add to the peak, in either order") {
  GraphBuilder g(1);
  g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const Span early{at(0), at(10)};
  const Span late{at(10), at(20)};
  CHECK(peak_in_flight(g.graph, std::vector{early, late}) == std::vector{1});
  CHECK(peak_in_flight(g.graph, std::vector{late, early}) == std::vector{1});
}

TEST_CASE("the peak is at its first instant") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, holding(fused(10, 0), 100));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, holding(fused(10, 0), 100));
  const std::vector<Span> spans = {{at(3), at(13)}, {at(20), at(30)}};
  const auto curves = memory_curves(g.graph, g.schedule({{g.f(a), g.f(b)}}), spans);
  CHECK(text(curves[0]) == "0:0 3:100 13:0 20:100 30:0");
  CHECK(curves[0].peak_at == at(3));
}

/// Bytes that a rank holds at an instant, straight from the definition.
Bytes held_at(const RandomCase& one, std::span<const Span> spans, RankId rank, Time now) {
  const auto during = [&](Time from, Time to, Bytes bytes) {
    return from <= now && now < to ? bytes : Bytes{0};
  };
  Bytes held = static_memory(one.graph.placement)[rank.row()];
  for (std::size_t p = 0; p < one.graph.pairs.size(); ++p) {
    const Pair& pair = one.graph.pairs[p];
    if (one.graph.task(pair.f).rank != rank) {
      continue;
    }
    const Strategy& s = one.graph.strategy(one.schedule.chosen[p]);
    const TaskId back = pair.b.valid() ? pair.b : pair.i;
    const Span f = spans[pair.f.row()];
    const Span b = back.valid() ? spans[back.row()] : Span{f.start, f.end};
    held += during(f.start, b.end, s.f_to_i);
    if (back.valid()) {
      held += during(b.start, b.end, s.rebuilt);
    }
    if (pair.w.valid()) {
      held += during(b.end, spans[pair.w.row()].end, s.i_to_w);
    }
  }
  for (std::size_t t = 0; t < one.graph.tasks.size(); ++t) {
    if (one.graph.tasks[t].rank == rank) {
      held += during(spans[t].start, spans[t].end, one.graph.tasks[t].transient);
    }
  }
  return held;
}

TEST_CASE("memory curves say at every instant what the definition says") {
  CHECK(rc::check("curve equals definition", [] {
    test::CaseShape shape;
    shape.ranks = *rc::gen::inRange<std::size_t>(1, 5);
    shape.pairs = *rc::gen::inRange<std::size_t>(1, 20);
    shape.shared_cells = *rc::gen::arbitrary<bool>();
    shape.overlaps = true;
    shape.epilogue = true;
    const RandomCase one = random_case(shape, *rc::gen::arbitrary<std::uint32_t>());
    OrderEvaluator evaluator(one.graph);
    const Timeline timeline = evaluator.evaluate(one.schedule);
    std::set<Time> instants = {kStart};
    for (const Span& span : timeline.spans) {
      instants.insert({span.start, span.end});
    }
    for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
      const MemoryCurve& curve = timeline.memory[r];
      RC_ASSERT(curve.points.front().at == kStart);
      Bytes peak = curve.fixed;
      std::size_t point = 0;
      for (const Time now : instants) {
        while (point + 1 < curve.points.size() && curve.points[point + 1].at <= now) {
          ++point;
        }
        const Bytes held = held_at(one, timeline.spans, RankId(r), now);
        RC_ASSERT(curve.points[point].held == held);
        peak = std::max(peak, held);
      }
      RC_ASSERT(curve.peak == peak);
      RC_ASSERT(curve.points.back().held == curve.fixed);
      for (std::size_t i = 1; i < curve.points.size(); ++i) {
        RC_ASSERT(curve.points[i - 1].at < curve.points[i].at);
      }
    }
  }));
}

}  // namespace
}  // namespace dipsim
