// SPDX-License-Identifier: Apache-2.0
// What the order evaluator refuses: deadlocks, and graphs that are not for it.
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::error_of;
using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::window;

constexpr RankId kRank0{0};
constexpr RankId kRank1{1};

std::vector<Span> times(const TaskGraph& graph, const Schedule& schedule) {
  OrderEvaluator evaluator(graph);
  const std::span<const Span> spans = evaluator.time(schedule);
  return {spans.begin(), spans.end()};
}

TEST_CASE("two passes that the graph does not let overlap are refused as one slot") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  Schedule schedule = g.schedule({{g.f(a)}});
  schedule.compute.push_back({g.f(b), g.b(a)});
  schedule.compute.push_back({g.b(b), {}});
  CHECK(error_of([&] { times(g.graph, schedule); }).kind() == ErrorKind::Input);
}

TEST_CASE("a deadlock is an input error that prints the waiting cycle") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank1, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  g.add_transfer(g.f(a), g.f(b), ns(5));
  g.add_transfer(g.b(b), g.b(a), ns(5));
  // Rank 0 wants the backward before the forward that it needs, by way of rank 1.
  const Error error =
      error_of([&] { times(g.graph, g.schedule({{g.b(a), g.f(a)}, {g.f(b), g.b(b)}})); });
  CHECK(error.kind() == ErrorKind::Input);
  const std::string text = error.what();
  CHECK(text.find("deadlock") != std::string::npos);
  CHECK(text.find(describe(g.graph, g.f(a)) + " waits for " + describe(g.graph, g.b(a))) !=
        std::string::npos);
  CHECK(text.find("a cycle of 2 waits") != std::string::npos);  // b(a) also needs f(a) itself
}

TEST_CASE("a deadlock over the slots of two cells is an input error") {
  GraphBuilder g(2);
  const RankId wide = g.add_rank({CellId(0), CellId(1)});
  const PairId a = g.add_pair(wide, Passes::ForwardOnly, fused(1, 0));
  const PairId b = g.add_pair(wide, Passes::ForwardOnly, fused(1, 0));
  const Error error =
      error_of([&] { times(g.graph, g.schedule({{g.f(a), g.f(b)}, {g.f(b), g.f(a)}})); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(std::string(error.what()).find("cycle of 2 waits") != std::string::npos);
}

TEST_CASE("a deadlock through an overlapped slot is an input error") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  g.add_pair_edges(a);
  g.graph.overlaps.push_back({g.f(a), g.b(a), ns(25)});
  g.graph.overlaps.push_back({g.f(b), g.b(a), ns(25)});
  validate(g.graph);
  SUBCASE("the backward needs its own forward of the same slot") {
    Schedule schedule = g.schedule({{}});
    schedule.compute.push_back({g.f(a), g.b(a)});
    schedule.compute.push_back({g.f(b), {}});
    CHECK(error_of([&] { times(g.graph, schedule); }).kind() == ErrorKind::Input);
  }
  SUBCASE("the backward needs a forward that is ordered after the slot") {
    Schedule schedule = g.schedule({{}});
    schedule.compute.push_back({g.f(b), g.b(a)});
    schedule.compute.push_back({g.f(a), {}});
    CHECK(error_of([&] { times(g.graph, schedule); }).kind() == ErrorKind::Input);
  }
}

TEST_CASE("graphs and schedules that only the engine can time are refused") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  const Schedule plain = g.schedule({{g.f(a), g.b(a)}, {}});
  SUBCASE("parameters gathered before a pass") {
    const TaskId gather = g.add_task(Op::Gather, Lane::Comm, kRank0, ns(5));
    g.add_edge(gather, g.f(a));
    CHECK(error_of([&] { times(g.graph, plain); }).kind() == ErrorKind::Input);
  }
  SUBCASE("copies that wait for more than their own forward") {
    g.add_offload(a);
    const PairId b = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
    g.add_edge(g.f(b), g.graph.pair(a).copy_in);
    const Schedule both = g.schedule({{g.f(a), g.b(a)}, {g.f(b)}});
    CHECK(error_of([&] { times(g.graph, both); }).kind() == ErrorKind::Input);
  }
  SUBCASE("a collective before a transfer") {
    const PairId b = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
    const TaskId reduce = g.add_task(Op::Collective, Lane::Comm, kRank0, ns(5));
    g.add_transfer(g.f(a), g.f(b), ns(5));
    g.add_edge(g.f(a), reduce);
    g.add_edge(reduce, g.f(b));
    CHECK(error_of([&] { times(g.graph, g.schedule({{g.f(a), g.b(a)}, {g.f(b)}})); }).kind() ==
          ErrorKind::Input);
  }
  SUBCASE("a fixed order of transfers") {
    Schedule ordered = plain;
    ordered.comm.add_row();
    ordered.comm.add_row();
    CHECK(error_of([&] { times(g.graph, ordered); }).kind() == ErrorKind::Input);
  }
}

TEST_CASE("a task that does not come after the passes is refused or timed, never left out") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  const Schedule schedule = g.schedule({{g.f(a), g.b(a)}});
  SUBCASE("a collective without predecessors") {
    const TaskId free = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(40));
    validate(g.graph);
    try {
      OrderEvaluator evaluator(g.graph);
      CHECK(window(evaluator.time(schedule)[free.row()]) == "0..40");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::Input);
    }
  }
  SUBCASE("two collectives that wait for each other") {
    const TaskId one = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(4));
    const TaskId two = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(4));
    g.add_edge(g.b(a), one);
    g.add_edge(two, one);
    g.add_edge(one, two);
    CHECK(error_of([&] { times(g.graph, schedule); }).kind() == ErrorKind::Input);
  }
}

}  // namespace
}  // namespace dipsim
