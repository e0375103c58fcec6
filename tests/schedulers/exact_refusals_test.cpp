// SPDX-License-Identifier: Apache-2.0
// What the exact solver refuses.
#include "schedulers/exact/exact.hpp"
#include "sim/core/error.hpp"
#include "tests/schedulers/exact_oracle.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dipsim {

namespace {

using test::equal_stages;
using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::set_limits;

constexpr RankId kRank0{0};

ExactResult solve(const TaskGraph& graph, const ExactOptions& options = {}) {
  return solve_exact(graph, test::first_strategies(graph), options);
}

std::string refusal(const TaskGraph& graph, ErrorKind kind = ErrorKind::Input,
                    const ExactOptions& options = {}) {
  const Error error = test::error_of([&] { static_cast<void>(solve(graph, options)); });
  CHECK(error.kind() == kind);
  return error.message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("exact solver: a case in which nothing fits is infeasible") {
  Strategy cost = fused(3, 5);
  cost.f_to_i = Bytes{10};
  GraphBuilder g = equal_stages(2, 2, Passes::Fused, cost);
  set_limits(g.graph, 9);
  CHECK(contains(refusal(g.graph, ErrorKind::Infeasible), "no order"));
  g.graph.placement.ranks[1].reserved = Bytes{10};
  CHECK(contains(refusal(g.graph, ErrorKind::Infeasible), "rank 1 holds 10 bytes all the time"));
}

TEST_CASE("exact solver: graphs outside its coverage are refused with what is allowed") {
  const auto base = [] { return equal_stages(2, 2, Passes::Fused, fused(3, 5)); };

  GraphBuilder shared = base();
  shared.graph.placement.ranks[1].cells = {CellId{0}};
  CHECK(contains(refusal(shared.graph), "ranks 0 and 1 share cell 0"));

  GraphBuilder wide = base();
  wide.add_rank({CellId{2}, CellId{3}});
  CHECK(contains(refusal(wide.graph), "rank 2 has 2 cells; allowed: 1"));

  GraphBuilder overlap = base();
  overlap.graph.overlaps.push_back({overlap.f(PairId{0}), overlap.b(PairId{2}), ns(6)});
  CHECK(contains(refusal(overlap.graph), "overlap"));

  GraphBuilder gather = base();
  gather.add_edge(gather.add_task(Op::Gather, Lane::Comm, kRank0, ns(1)), gather.f(PairId{0}));
  CHECK(contains(refusal(gather.graph), "waits for no pass"));

  GraphBuilder scratch = base();
  for (Task& task : scratch.graph.tasks) {
    task.transient = task.op == Op::Transfer ? Bytes{4} : Bytes{};
  }
  CHECK(contains(refusal(scratch.graph), "4 bytes while it runs; allowed: passes only"));

  GraphBuilder cycle = base();
  cycle.add_edge(cycle.b(PairId{0}), cycle.f(PairId{0}));
  CHECK(contains(refusal(cycle.graph), "deadlock"));

  CHECK(contains(refusal(equal_stages(5, 7, Passes::Fused, fused(3, 5)).graph),
                 "70 passes and 0 W that nothing waits for; allowed: up to 64"));
}

TEST_CASE("exact solver: passes of no time are refused only where their memory could matter") {
  Strategy cost = fused(0, 5);
  cost.f_to_i = Bytes{10};
  GraphBuilder g = equal_stages(2, 2, Passes::Fused, cost);
  set_limits(g.graph, 19);
  CHECK(contains(refusal(g.graph), "takes no time but changes the memory"));
  set_limits(g.graph, 1000);
  CHECK(solve(g.graph).makespan == 3 * ns(5));
}

TEST_CASE("exact solver: choices, incumbents and limits out of range are refused") {
  Strategy cost = fused(3, 5);
  cost.f_to_i = Bytes{10};
  GraphBuilder g(1);
  g.add_pair_edges(g.add_pair(kRank0, Passes::Fused, std::vector{cost, cost}));
  g.add_pair_edges(g.add_pair(kRank0, Passes::Fused, cost));
  set_limits(g.graph, 15);
  const Schedule follow = g.schedule({{TaskId{0}, TaskId{1}, TaskId{2}, TaskId{3}}});
  const Schedule together = g.schedule({{TaskId{0}, TaskId{2}, TaskId{1}, TaskId{3}}});

  const auto message = [&](const std::vector<StrategyId>& chosen) {
    return test::error_of([&] { static_cast<void>(solve_exact(g.graph, chosen)); }).message();
  };
  CHECK(message({StrategyId{0}}) == "1 choices for 2 pairs");
  CHECK(contains(message({StrategyId{2}, StrategyId{2}}), "allowed: 0 to 1"));

  ExactOptions options;
  options.incumbent = follow;
  CHECK(solve(g.graph, options).makespan == ns(16));
  options.incumbent = together;
  CHECK(contains(refusal(g.graph, ErrorKind::Input, options), "needs 20 bytes on rank 0"));
  options.incumbent = follow;
  options.incumbent->chosen[0] = StrategyId{1};
  CHECK(contains(refusal(g.graph, ErrorKind::Input, options), "other strategies"));

  ExactOptions none;
  none.max_nodes = 0;
  CHECK(contains(refusal(g.graph, ErrorKind::Input, none), "max_nodes"));
  none = {};
  none.max_width = 0;
  CHECK(contains(refusal(g.graph, ErrorKind::Input, none), "max_width"));
  none = {};
  none.max_seconds = -1.0;
  CHECK(contains(refusal(g.graph, ErrorKind::Input, none), "max_seconds"));
}

}  // namespace dipsim
