// SPDX-License-Identifier: Apache-2.0
// The exact solver on cases with a known optimum, and against itself on cases that must agree.
#include "schedulers/exact/exact.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/schedulers/exact_oracle.hpp"
#include "tests/support/graph_builder.hpp"
#include "tests/support/small_instances.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace dipsim {

namespace {

using test::equal_stages;
using test::first_strategies;
using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::set_limits;
using test::split;

constexpr RankId kRank0{0};
constexpr RankId kRank1{1};

ExactResult solve(const TaskGraph& graph, const ExactOptions& options = {}) {
  return solve_exact(graph, first_strategies(graph), options);
}

Duration optimum(const TaskGraph& graph) {
  const ExactResult result = solve(graph);
  REQUIRE(result.proven);
  return result.makespan;
}

/// The passes of `graph` as forwards that hold nothing, with the same times and transfers without
/// occupation; `backwards` in time: what waited for a pass now comes before it.
TaskGraph only_forwards(const TaskGraph& graph, bool backwards) {
  GraphBuilder g(graph.placement.ranks.size());
  const std::vector<StrategyId> chosen = first_strategies(graph);
  std::vector<TaskId> copy(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (is_pass(graph.tasks[i].op)) {
      const Duration time = duration_of(graph, TaskId(i), chosen);
      copy[i] = g.f(g.add_pair(graph.tasks[i].rank, Passes::ForwardOnly, fused(time.count(), 0)));
    }
  }
  const auto connect = [&](TaskId from, TaskId to, Duration latency) {
    const TaskId first = copy[(backwards ? to : from).row()];
    const TaskId second = copy[(backwards ? from : to).row()];
    if (g.graph.task(first).rank == g.graph.task(second).rank) {
      g.add_edge(first, second);
    } else {
      g.add_transfer(first, second, ns(0), latency);
    }
  };
  for (const Edge& edge : graph.edges) {
    if (is_pass(graph.task(edge.from).op) && is_pass(graph.task(edge.to).op)) {
      connect(edge.from, edge.to, ns(0));
    }
    for (const Edge& onward : graph.edges) {
      if (onward.from == edge.to && graph.task(edge.to).op == Op::Transfer) {
        connect(edge.from, onward.to, graph.task(edge.to).latency);
      }
    }
  }
  return g.graph;
}

}  // namespace

TEST_CASE("exact solver: equal stages take (m + p - 1)(F + B), as 1F1B does") {
  CHECK(optimum(equal_stages(2, 2, Passes::Fused, fused(3, 5)).graph) == 3 * ns(3 + 5));
  CHECK(optimum(equal_stages(3, 4, Passes::Fused, fused(1, 2)).graph) == 6 * ns(1 + 2));
  CHECK(optimum(equal_stages(4, 6, Passes::Fused, fused(10, 20)).graph) == 9 * ns(10 + 20));
}

TEST_CASE("exact solver: equal stages with F = I = W take (3m + p - 1)F, as ZB-H1 does") {
  // docs/metrics.md: m(F + I + W) + (p - 1)(F + I - min(F, I, W)).
  CHECK(optimum(equal_stages(2, 3, Passes::Split, split(1, 1, 1)).graph) == (9 + 1) * ns(1));
  CHECK(optimum(equal_stages(3, 4, Passes::Split, split(5, 5, 5)).graph) == (12 + 2) * ns(5));
  CHECK(optimum(equal_stages(4, 6, Passes::Split, split(2, 2, 2)).graph) == (18 + 3) * ns(2));
}

TEST_CASE("exact solver: where one microbatch fits at a time they follow each other") {
  Strategy cost = fused(3, 5);
  cost.f_to_i = Bytes{10};
  GraphBuilder g = equal_stages(2, 3, Passes::Fused, cost, ns(7));
  set_limits(g.graph, 19);
  CHECK(optimum(g.graph) == 3 * (2 * ns(3 + 5) + 2 * ns(7)));
  set_limits(g.graph, 20);
  CHECK(optimum(g.graph) < 3 * (2 * ns(3 + 5) + 2 * ns(7)));
}

TEST_CASE("exact solver: what is held from I to W is freed before the next forward where it must") {
  // The one rank holds 10 bytes from F to I and 10 from I to W. With 19 the passes have one order.
  Strategy cost = split(2, 3, 4);
  cost.f_to_i = Bytes{10};
  cost.i_to_w = Bytes{10};
  // Rank 1 is free of limits and sends its gradient back after 20.
  GraphBuilder g(2);
  for (int b = 0; b < 2; ++b) {
    const PairId near = g.add_pair(kRank0, Passes::Split, cost);
    const PairId far = g.add_pair(kRank1, Passes::ForwardOnly, fused(20, 0));
    g.add_pair_edges(near);
    g.add_edge(g.f(near), g.f(far));
    g.add_edge(g.f(far), g.i(near));
  }
  set_limits(g.graph, 19);
  CHECK(optimum(g.graph) == 2 * ns(2 + 20 + 3 + 4));
  set_limits(g.graph, 20);
  CHECK(optimum(g.graph) == ns(2 + 20 + 20 + 3 + 4));
}

TEST_CASE("exact solver: a W without I before it frees what its forward holds") {
  // Frozen upstream: F and W only. Each forward feeds a pass of 20 on a rank of its own.
  Strategy cost = split(2, 0, 6);
  cost.f_to_i = Bytes{10};
  GraphBuilder g(3);
  for (const RankId rank : {RankId{1}, RankId{2}}) {
    const PairId pair = g.add_pair(kRank0, Passes::ForwardOnly, cost);
    Task weights = g.graph.task(g.f(pair));
    weights.op = Op::W;
    g.graph.tasks.push_back(weights);
    g.graph.pairs[pair.row()].w = TaskId(g.graph.tasks.size() - 1);
    g.add_edge(g.f(pair), g.w(pair));
    const TaskId next = g.f(g.add_pair(rank, Passes::ForwardOnly, fused(20, 0)));
    g.add_edge(g.f(pair), next);
  }
  set_limits(g.graph, 20);
  CHECK(optimum(g.graph) == ns(2 + 2 + 20));
  set_limits(g.graph, 19);
  CHECK(optimum(g.graph) == ns(2 + 6 + 2 + 20));
}

TEST_CASE("exact solver: a rank waits for an urgent pass though it could run another one") {
  // Rank 1 sends work that arrives at 1, takes 1 on rank 0 and 20 back on rank 1. Rank 0 has 10 of
  // its own. Starting with its own gives 10 + 1 + 20.
  GraphBuilder g(2);
  const TaskId first = g.f(g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0)));
  const TaskId urgent = g.f(g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0)));
  const TaskId last = g.f(g.add_pair(kRank1, Passes::ForwardOnly, fused(20, 0)));
  const TaskId own = g.f(g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0)));
  g.add_edge(first, urgent);
  g.add_edge(urgent, last);
  const ExactResult result = solve(g.graph);
  CHECK(result.makespan == ns(22));
  CHECK(result.schedule.compute[0][0].task == urgent);
  CHECK(result.schedule.compute[0][1].task == own);
}

TEST_CASE("exact solver: a transfer that occupies its link delays the ones behind it") {
  // Rank 0 runs a (1) and b (1), whose results occupy the link for 10 and 1; rank 1 then needs 5
  // after a's and 5 after b's. With b first: 1, 2 arrives; 2, 12 arrives: 12 + 5.
  GraphBuilder g(2);
  const TaskId a = g.f(g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0)));
  const TaskId b = g.f(g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0)));
  g.add_transfer(a, g.f(g.add_pair(kRank1, Passes::ForwardOnly, fused(5, 0))), ns(10));
  g.add_transfer(b, g.f(g.add_pair(kRank1, Passes::ForwardOnly, fused(5, 0))), ns(1));
  CHECK(optimum(g.graph) == ns(17));
}

TEST_CASE("exact solver: time reversed, and with every pass a forward, the optimum is the same") {
  for (std::size_t i = 0; i < 30; ++i) {
    CAPTURE(i);
    test::SmallInstance instance = test::small_instance(2, i);
    for (TaskGraph* graph : {&instance.whole, &instance.split}) {
      for (Task& task : graph->tasks) {
        task.fixed = ns(0);  // queueing is not the same backwards
      }
      set_limits(*graph, std::numeric_limits<std::int64_t>::max() / 2);
      if (graph->pairs.size() > 12) {
        continue;  // keeps the test short
      }
      const Duration expected = optimum(*graph);
      CHECK(optimum(only_forwards(*graph, false)) == expected);
      CHECK(optimum(only_forwards(*graph, true)) == expected);
    }
  }
}

TEST_CASE("exact solver: more memory never takes longer, and times k take k times as long") {
  for (std::size_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    TaskGraph graph = test::small_instance(3, i).split;
    const Duration tight = optimum(graph);
    TaskGraph slow = graph;
    for (Strategy& s : slow.strategies) {
      s.f *= 3;
      s.i *= 3;
      s.w *= 3;
    }
    for (Task& task : slow.tasks) {
      task.fixed *= 3;
      task.latency *= 3;
    }
    CHECK(optimum(slow) == 3 * tight);
    for (Rank& rank : graph.placement.ranks) {
      rank.memory_limit += rank.memory_limit;
    }
    CHECK(optimum(graph) <= tight);
  }
}

TEST_CASE("exact solver: what it finds within a limit encloses the optimum") {
  for (std::size_t i = 0; i < 12; ++i) {
    CAPTURE(i);
    const TaskGraph graph = test::small_instance(4, i).split;
    const Duration least = optimum(graph);
    std::vector<ExactOptions> limits(5);
    limits[0].max_nodes = 1;
    limits[1].max_nodes = 300;
    limits[2].max_width = 1;
    limits[3].max_width = 5;
    limits[4].max_seconds = 1e-9;
    for (const ExactOptions& limited : limits) {
      const ExactResult result = solve(graph, limited);
      CHECK(result.lower_bound <= least);
      CHECK(result.makespan >= least);
      CHECK(result.proven == (result.lower_bound == result.makespan));
      CHECK(lower_bound(graph).makespan <= result.lower_bound);
      CHECK(OrderEvaluator(graph).evaluate(result.schedule).makespan == result.makespan);
    }
    CHECK_FALSE(solve(graph, limits[0]).proven);
  }
}

TEST_CASE("exact solver: an incumbent is improved on where it can be, and returned where not") {
  const TaskGraph graph = test::small_instance(5, 3).whole;
  const ExactResult best = solve(graph);
  ExactOptions narrow;
  narrow.max_nodes = 1;
  const ExactResult poor = solve(graph, narrow);
  REQUIRE(poor.makespan > best.makespan);
  ExactOptions options;
  options.incumbent = poor.schedule;
  CHECK(solve(graph, options).makespan == best.makespan);
  options.incumbent = best.schedule;
  const ExactResult again = solve(graph, options);
  CHECK(again.proven);
  CHECK(again.makespan == best.makespan);
  CHECK(again.schedule == best.schedule);
  CHECK(again.nodes < best.nodes);
}

TEST_CASE("exact solver: equal inputs give equal results") {
  const TaskGraph graph = test::small_instance(6, 5).split;
  const ExactResult a = solve(graph);
  const ExactResult b = solve(graph);
  CHECK(a.schedule == b.schedule);
  CHECK(a.nodes == b.nodes);
}

TEST_CASE("exact solver: a graph without passes takes no time") {
  const ExactResult result = solve(GraphBuilder(2).graph);
  CHECK(result.proven);
  CHECK(result.makespan == ns(0));
  CHECK(result.schedule.compute.size() == 2);
}

}  // namespace dipsim
