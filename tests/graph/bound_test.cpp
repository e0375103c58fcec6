// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/bound.hpp"

#include "sim/graph/order_evaluator.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace dipsim {
namespace {

using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::split;

constexpr RankId kRank0{0};
constexpr RankId kRank1{1};

/// A plain pipeline: one stage per rank, its microbatches independent of each other.
GraphBuilder pipeline(std::size_t ranks, std::size_t microbatches, Passes passes,
                      const Strategy& cost, Duration transfer) {
  GraphBuilder g(ranks);
  for (std::size_t m = 0; m < microbatches; ++m) {
    PairId before;
    for (std::size_t r = 0; r < ranks; ++r) {
      const PairId pair = g.add_pair(RankId(r), passes, cost);
      g.add_pair_edges(pair);
      if (r > 0) {
        const auto back = [&](PairId p) { return passes == Passes::Split ? g.i(p) : g.b(p); };
        g.add_transfer(g.f(before), g.f(pair), transfer);
        g.add_transfer(back(pair), back(before), transfer);
      }
      before = pair;
    }
  }
  return g;
}

TEST_CASE("of equal stages the bound is the 1F1B makespan (m + p - 1)(F + B)") {
  CHECK(lower_bound(pipeline(8, 64, Passes::Fused, fused(1, 2), ns(0)).graph).makespan == ns(213));
  CHECK(lower_bound(pipeline(4, 9, Passes::Fused, fused(3, 5), ns(0)).graph).makespan == ns(96));
}

TEST_CASE("with a split backward the bound is what the zero-bubble schedules reach") {
  // ZB-H1 with F = I = W = 1 on 8 ranks: 79 for 24 microbatches (an optimum by integer programming)
  // and 199 for 64.
  CHECK(lower_bound(pipeline(8, 24, Passes::Split, split(1, 1, 1), ns(0)).graph).makespan ==
        ns(79));
  CHECK(lower_bound(pipeline(8, 64, Passes::Split, split(1, 1, 1), ns(0)).graph).makespan ==
        ns(199));
}

TEST_CASE("one microbatch is bounded by its way through the pipeline, transfers included") {
  // 4 F of 10, 4 B of 20, 6 transfers of 3.
  const LowerBound bound = lower_bound(pipeline(4, 1, Passes::Fused, fused(10, 20), ns(3)).graph);
  CHECK(bound.critical_path == ns(138));
  CHECK(bound.makespan == ns(138));
}

TEST_CASE("a cell is bounded by what comes before it, its load and what comes after it") {
  GraphBuilder g(2);
  const PairId first = g.add_pair(kRank0, Passes::ForwardOnly, fused(7, 0));
  const PairId last = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  std::vector<PairId> middle;
  for (int k = 0; k < 3; ++k) {
    const PairId pair = g.add_pair(kRank1, Passes::ForwardOnly, fused(20, 0));
    g.add_transfer(g.f(first), g.f(pair), ns(2), ns(1));
    g.add_transfer(g.f(pair), g.f(last), ns(4), ns(1));
    middle.push_back(pair);
  }
  const LowerBound bound = lower_bound(g.graph);
  CHECK(bound.critical_path == ns(7 + 3 + 20 + 5 + 5));
  CHECK(bound.makespan == ns(7 + 3 + 60 + 5 + 5));
  CHECK(bound.cell == CellId(1));
}

TEST_CASE("what comes after a cell is the longest of several ways on") {
  GraphBuilder g(3);
  const PairId a = g.add_pair(kRank1, Passes::ForwardOnly, fused(20, 0));
  const PairId b = g.add_pair(kRank1, Passes::ForwardOnly, fused(20, 0));
  const PairId shorter = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
  const PairId longer = g.add_pair(RankId(2), Passes::ForwardOnly, fused(9, 0));
  const PairId shortest = g.add_pair(kRank0, Passes::ForwardOnly, fused(0, 0));
  for (const PairId pair : {a, b}) {
    for (const PairId next : {shorter, longer, shortest}) {
      g.add_transfer(g.f(pair), g.f(next), ns(0));
    }
  }
  CHECK(lower_bound(g.graph).makespan == ns(49));
}

TEST_CASE("the cell of the bound is the heaviest one even where a path is longer") {
  GraphBuilder g(3);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank1, Passes::ForwardOnly, fused(5, 0));
  const PairId c = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId d = g.add_pair(kRank1, Passes::ForwardOnly, fused(5, 0));
  const PairId e = g.add_pair(RankId(2), Passes::ForwardOnly, fused(17, 0));
  g.add_edge(g.f(a), g.f(b));
  g.add_edge(g.f(b), g.f(c));
  g.add_edge(g.f(c), g.f(d));
  const LowerBound bound = lower_bound(g.graph);
  CHECK(bound.critical_path == ns(20));
  CHECK(bound.makespan == ns(20));
  CHECK(bound.cell == CellId(2));
  CHECK(g.f(e).valid());
}

TEST_CASE("each pass counts at its cheapest allowed strategy and at the speed of its rank") {
  GraphBuilder g(0);
  const RankId fast = g.add_rank({CellId(0)}, 2.0);
  const PairId a = g.add_pair(fast, Passes::Fused, {fused(10, 40), fused(20, 30)});
  g.add_pair_edges(a);
  CHECK(lower_bound(g.graph).makespan == ns(5 + 15));
}

TEST_CASE("a rank of several cells loads each of them") {
  GraphBuilder g(2);
  const RankId wide = g.add_rank({CellId(0), CellId(1)});
  g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  g.add_pair(kRank1, Passes::ForwardOnly, fused(4, 0));
  g.add_pair(wide, Passes::ForwardOnly, fused(100, 0));
  CHECK(lower_bound(g.graph).makespan == ns(110));
  CHECK(lower_bound(g.graph).cell == CellId(0));
}

TEST_CASE("passes that may overlap count together once") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  CHECK(lower_bound(g.graph).makespan == ns(60));
  g.graph.overlaps.push_back({g.f(b), g.b(a), ns(24)});
  CHECK(lower_bound(g.graph).makespan == ns(54));
  Schedule schedule = g.schedule({{g.f(a)}});
  schedule.compute.push_back({g.f(b), g.b(a)});
  schedule.compute.push_back({g.b(b), {}});
  CHECK(OrderEvaluator(g.graph).evaluate(schedule).makespan == ns(54));
}

TEST_CASE("an overlap on a fast rank is as fast as the rank") {
  GraphBuilder g(0);
  const RankId fast = g.add_rank({CellId(0)}, 2.0);
  const PairId a = g.add_pair(fast, Passes::Fused, fused(100, 100));
  const PairId b = g.add_pair(fast, Passes::Fused, fused(100, 100));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  g.graph.overlaps.push_back({g.f(b), g.b(a), ns(60)});
  Schedule schedule = g.schedule({{g.f(a)}});
  schedule.compute.push_back({g.f(b), g.b(a)});
  schedule.compute.push_back({g.b(b), {}});
  CHECK(OrderEvaluator(g.graph).evaluate(schedule).makespan == ns(130));
  CHECK(lower_bound(g.graph).makespan <= ns(130));
}

TEST_CASE("an overlap that takes longer than both passes apart does not raise the bound") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  g.graph.overlaps.push_back({g.f(b), g.b(a), ns(500)});
  CHECK(lower_bound(g.graph).makespan == ns(60));
}

TEST_CASE("what comes before the first pass or after the last one is not part of the makespan") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(5, 5));
  g.add_pair_edges(a);
  const TaskId gather = g.add_task(Op::Gather, Lane::Comm, kRank0, ns(100));
  g.add_edge(gather, g.f(a));
  const TaskId reduce = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(100));
  g.add_edge(g.b(a), reduce);
  CHECK(lower_bound(g.graph).makespan == ns(10));
}

TEST_CASE("what stands between two passes counts: copies, gathers, transfers") {
  GraphBuilder g(0);
  const RankId slow = g.add_rank({CellId(0)}, 0.5);
  Strategy strategy = fused(5, 5);
  strategy.copy = ns(100);
  const PairId a = g.add_pair(slow, Passes::Fused, strategy);
  g.add_pair_edges(a);
  g.add_offload(a);
  const TaskId gather = g.add_task(Op::Gather, Lane::Comm, slow, ns(7));
  g.add_edge(g.graph.pair(a).copy_in, gather);
  g.add_edge(gather, g.b(a));
  // The passes take twice as long on the slow rank; copies and gathers do not.
  CHECK(lower_bound(g.graph).makespan == ns(10 + 100 + 100 + 7 + 10));
}

TEST_CASE("a gather behind a pass counts even where it also waits for one that is not") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const TaskId gather = g.add_task(Op::Gather, Lane::Comm, kRank1, ns(7));
  g.add_edge(g.f(a), gather);
  for (int k = 0; k < 2; ++k) {
    const PairId after = g.add_pair(kRank1, Passes::ForwardOnly, fused(30, 0));
    g.add_edge(gather, g.f(after));
  }
  CHECK(lower_bound(g.graph).makespan == ns(10 + 7 + 60));
  TaskId next = gather;
  for (int k = 0; k < 3; ++k) {
    const TaskId earlier = g.add_task(Op::Gather, Lane::Comm, kRank1, ns(50));
    g.add_edge(earlier, next);
    next = earlier;
  }
  CHECK(lower_bound(g.graph).makespan == ns(10 + 7 + 60));
}

TEST_CASE("a cycle in the graph itself is an input error") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(5, 5));
  g.add_pair_edges(a);
  g.add_edge(g.b(a), g.f(a));
  CHECK(test::error_of([&] { lower_bound(g.graph); }).kind() == ErrorKind::Input);
}

TEST_CASE("nothing to do is bounded by no time") {
  const LowerBound bound = lower_bound(GraphBuilder(2).graph);
  CHECK(bound.makespan == ns(0));
  CHECK_FALSE(bound.cell.valid());
}

}  // namespace
}  // namespace dipsim
