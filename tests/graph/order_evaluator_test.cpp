// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/order_evaluator.hpp"

#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace dipsim {
namespace {

using test::at;
using test::error_of;
using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::split;
using test::window;

constexpr RankId kRank0{0};
constexpr RankId kRank1{1};
constexpr RankId kRank2{2};

std::vector<Span> times(const TaskGraph& graph, const Schedule& schedule) {
  OrderEvaluator evaluator(graph);
  const std::span<const Span> spans = evaluator.time(schedule);
  return {spans.begin(), spans.end()};
}

TEST_CASE("passes of one rank run one after the other in their order") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank0, Passes::Split, split(1, 2, 3));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  const auto spans = times(g.graph, g.schedule({{g.f(b), g.f(a), g.i(b), g.b(a), g.w(b)}}));
  CHECK(window(spans[g.f(b).row()]) == "0..1");
  CHECK(window(spans[g.f(a).row()]) == "1..11");
  CHECK(window(spans[g.i(b).row()]) == "11..13");
  CHECK(window(spans[g.b(a).row()]) == "13..33");
  CHECK(window(spans[g.w(b).row()]) == "33..36");
}

TEST_CASE("two transfers from one rank to one peer queue first in, first out") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const PairId y = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const TaskId first = g.add_transfer(g.f(a), g.f(x), ns(10));
  const TaskId second = g.add_transfer(g.f(b), g.f(y), ns(10));
  const auto spans = times(g.graph, g.schedule({{g.f(a), g.f(b)}, {g.f(x), g.f(y)}}));
  CHECK(window(spans[first.row()]) == "5..15");
  CHECK(window(spans[second.row()]) == "15..25");  // ready at 6
  CHECK(window(spans[g.f(x).row()]) == "15..16");
  CHECK(window(spans[g.f(y).row()]) == "25..26");
}

TEST_CASE("the order in which the sender computes decides the queue, not the order of tasks") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const PairId y = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const TaskId late = g.add_transfer(g.f(a), g.f(x), ns(10));
  const TaskId early = g.add_transfer(g.f(b), g.f(y), ns(10));
  const auto spans = times(g.graph, g.schedule({{g.f(b), g.f(a)}, {g.f(x), g.f(y)}}));
  CHECK(window(spans[early.row()]) == "1..11");
  CHECK(window(spans[late.row()]) == "11..21");
}

TEST_CASE("latency delays the arrival but not the next transfer") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(0, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const PairId y = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const TaskId first = g.add_transfer(g.f(a), g.f(x), ns(10), ns(100));
  const TaskId second = g.add_transfer(g.f(b), g.f(y), ns(10), ns(100));
  const auto spans = times(g.graph, g.schedule({{g.f(a), g.f(b)}, {g.f(x), g.f(y)}}));
  CHECK(window(spans[first.row()]) == "5..115");
  CHECK(window(spans[second.row()]) == "15..125");
  CHECK(window(spans[g.f(y).row()]) == "125..126");
}

TEST_CASE("transfers the other way, or to another peer, do not queue behind each other") {
  GraphBuilder g(3);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank1, Passes::ForwardOnly, fused(5, 0));
  const PairId to_a = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
  const PairId to_b = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const PairId c = g.add_pair(kRank2, Passes::ForwardOnly, fused(1, 0));
  const TaskId there = g.add_transfer(g.f(a), g.f(to_b), ns(10));
  const TaskId back = g.add_transfer(g.f(b), g.f(to_a), ns(10));
  const TaskId elsewhere = g.add_transfer(g.f(a), g.f(c), ns(10));
  const auto spans =
      times(g.graph, g.schedule({{g.f(a), g.f(to_a)}, {g.f(b), g.f(to_b)}, {g.f(c)}}));
  CHECK(window(spans[there.row()]) == "5..15");
  CHECK(window(spans[back.row()]) == "5..15");
  CHECK(window(spans[elsewhere.row()]) == "5..15");
}

TEST_CASE("one transfer serves several passes of the receiver and occupies its link once") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(0, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(3, 0));
  const PairId y = g.add_pair(kRank1, Passes::ForwardOnly, fused(3, 0));
  const PairId z = g.add_pair(kRank1, Passes::ForwardOnly, fused(3, 0));
  const TaskId shared = g.add_transfer(g.f(a), g.f(x), ns(10));
  g.add_edge(shared, g.f(y));
  const TaskId next = g.add_transfer(g.f(b), g.f(z), ns(10));
  validate(g.graph);
  const auto spans = times(g.graph, g.schedule({{g.f(a), g.f(b)}, {g.f(y), g.f(x), g.f(z)}}));
  CHECK(window(spans[shared.row()]) == "5..15");
  CHECK(window(spans[next.row()]) == "15..25");
  CHECK(window(spans[g.f(y).row()]) == "15..18");
  CHECK(window(spans[g.f(x).row()]) == "18..21");
  CHECK(window(spans[g.f(z).row()]) == "25..28");
}

TEST_CASE("a transfer that no task waits for still takes its time on the link") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(0, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const TaskId result = g.add_transfer(g.f(a), g.f(x), ns(7));
  g.graph.edges.pop_back();  // nobody reads it
  const TaskId next = g.add_transfer(g.f(b), g.f(x), ns(1));
  validate(g.graph);
  OrderEvaluator evaluator(g.graph);
  const Timeline timeline = evaluator.evaluate(g.schedule({{g.f(a), g.f(b)}, {g.f(x)}}));
  CHECK(window(timeline.spans[result.row()]) == "5..12");
  CHECK(window(timeline.spans[next.row()]) == "12..13");
}

// Gates: a task can't start one nanosecond before its last input, its cell or its link is free, and
// does start at that very instant.
TEST_CASE("a pass starts at the very nanosecond at which its last gate opens") {
  // Rank 0: a. Rank 1: own, then x, which needs a's result (transfer 7 + latency 2) and own.
  const auto start_of_x = [](std::int64_t a_time, std::int64_t own_time) {
    GraphBuilder g(2);
    const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(a_time, 0));
    const PairId own = g.add_pair(kRank1, Passes::ForwardOnly, fused(own_time, 0));
    const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
    g.add_transfer(g.f(a), g.f(x), ns(7), ns(2));
    const auto spans = times(g.graph, g.schedule({{g.f(a)}, {g.f(own), g.f(x)}}));
    return (spans[g.f(x).row()].start - kStart).count();
  };
  CHECK(start_of_x(11, 20) == 20);  // both at 20
  CHECK(start_of_x(12, 20) == 21);  // the data arrive one later
  CHECK(start_of_x(10, 20) == 20);  // one earlier: the cell decides
  CHECK(start_of_x(11, 21) == 21);
  CHECK(start_of_x(11, 19) == 20);
}

TEST_CASE("a transfer starts at the very nanosecond at which its link is free") {
  const auto start_of_second = [](std::int64_t first_time, std::int64_t second_time) {
    GraphBuilder g(2);
    const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
    const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(second_time, 0));
    const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
    const PairId y = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
    g.add_transfer(g.f(a), g.f(x), ns(first_time), ns(50));
    const TaskId second = g.add_transfer(g.f(b), g.f(y), ns(3));
    const auto spans = times(g.graph, g.schedule({{g.f(a), g.f(b)}, {g.f(x), g.f(y)}}));
    return (spans[second.row()].start - kStart).count();
  };
  CHECK(start_of_second(10, 10) == 11);  // free at 11, data at 11
  CHECK(start_of_second(11, 10) == 12);
  CHECK(start_of_second(10, 11) == 12);
  CHECK(start_of_second(9, 10) == 11);
  CHECK(start_of_second(10, 9) == 11);
}

TEST_CASE("a pass of a rank with several cells needs all of them at once") {
  GraphBuilder g(3);
  const RankId wide = g.add_rank({CellId(0), CellId(2)});
  const PairId on_0 = g.add_pair(kRank0, Passes::ForwardOnly, fused(4, 0));
  const PairId on_1 = g.add_pair(kRank1, Passes::ForwardOnly, fused(50, 0));
  const PairId on_2 = g.add_pair(kRank2, Passes::ForwardOnly, fused(6, 0));
  const PairId both = g.add_pair(wide, Passes::ForwardOnly, fused(3, 0));
  const PairId after_0 = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
  const PairId after_2 = g.add_pair(kRank2, Passes::ForwardOnly, fused(1, 0));
  const auto spans = times(g.graph, g.schedule({{g.f(on_0), g.f(both), g.f(after_0)},
                                                {g.f(on_1)},
                                                {g.f(on_2), g.f(both), g.f(after_2)}}));
  CHECK(window(spans[g.f(both).row()]) == "6..9");
  CHECK(window(spans[g.f(after_0).row()]) == "9..10");
  CHECK(window(spans[g.f(after_2).row()]) == "9..10");
  CHECK(window(spans[g.f(on_1).row()]) == "0..50");
}

TEST_CASE("two ranks on one cell compete for it") {
  GraphBuilder g(1);
  const RankId other = g.add_rank({CellId(0)});
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(4, 0));
  const PairId b = g.add_pair(other, Passes::ForwardOnly, fused(6, 0));
  const auto spans = times(g.graph, g.schedule({{g.f(b), g.f(a)}}));
  CHECK(window(spans[g.f(b).row()]) == "0..6");
  CHECK(window(spans[g.f(a).row()]) == "6..10");
}

TEST_CASE("an overlapped slot starts when both inputs are there and takes its own time") {
  GraphBuilder g(2);
  const PairId early = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId late = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId far = g.add_pair(kRank1, Passes::ForwardOnly, fused(17, 0));
  const PairId sink = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  g.add_pair_edges(early);
  g.add_pair_edges(late);
  g.add_transfer(g.f(far), g.b(early), ns(3));
  const TaskId from_f = g.add_transfer(g.f(late), g.f(sink), ns(2));
  const TaskId from_b = g.add_transfer(g.b(early), g.f(sink), ns(2));
  g.graph.overlaps.push_back({g.f(late), g.b(early), ns(25)});
  validate(g.graph);
  Schedule schedule = g.schedule({{g.f(early)}});
  schedule.compute.push_back({g.f(late), g.b(early)});
  schedule.compute.push_back({g.b(late), {}});
  schedule.compute.add_row();
  schedule.compute.push_back({g.f(far), {}});
  schedule.compute.push_back({g.f(sink), {}});
  validate(g.graph, schedule);
  const auto spans = times(g.graph, schedule);
  CHECK(window(spans[g.f(late).row()]) == "20..45");  // 17 + 3, the backward's input
  CHECK(window(spans[g.b(early).row()]) == "20..45");
  CHECK(window(spans[g.b(late).row()]) == "45..65");
  CHECK(window(spans[from_f.row()]) == "45..47");  // forward first on the link
  CHECK(window(spans[from_b.row()]) == "47..49");
}

TEST_CASE("after the passes, collectives wait for every member and optimizers for them") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank1, Passes::Fused, fused(10, 25));
  const PairId c = g.add_pair(kRank0, Passes::Fused, fused(1, 1));
  for (const PairId pair : {a, b, c}) {
    g.add_pair_edges(pair);
  }
  const GroupId both = g.add_group({kRank0, kRank1});
  const TaskId own = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(40));
  const TaskId shared = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(7), both);
  const TaskId other_lane = g.add_task(Op::Collective, Lane::Comm, kRank0, ns(7), both);
  const TaskId step = g.add_task(Op::Optimizer, Lane::Compute, kRank1, ns(3));
  g.add_edge(g.b(a), own);
  for (const TaskId each : {shared, other_lane}) {
    g.add_edge(g.b(a), each);
    g.add_edge(g.b(b), each);
  }
  g.add_edge(shared, step);
  g.add_edge(other_lane, step);
  validate(g.graph);
  OrderEvaluator evaluator(g.graph);
  const Timeline t =
      evaluator.evaluate(g.schedule({{g.f(a), g.b(a), g.f(c), g.b(c)}, {g.f(b), g.b(b)}}));
  CHECK(window(t.spans[own.row()]) == "30..70");
  CHECK(window(t.spans[other_lane.row()]) == "35..42");
  CHECK(window(t.spans[shared.row()]) == "70..77");  // the lane of rank 0 is taken until 70
  CHECK(window(t.spans[step.row()]) == "77..80");
  CHECK(t.makespan == ns(35));
  CHECK(t.iteration == ns(80));
}

TEST_CASE("what is ready first takes a lane first, and of two ready at once the lower task") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(1, 2));
  const PairId b = g.add_pair(kRank0, Passes::Fused, fused(1, 2));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  const TaskId of_b = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(10));
  const TaskId of_a = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(10));
  const TaskId also_b = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(10));
  g.add_edge(g.b(a), of_a);
  g.add_edge(g.b(b), also_b);
  g.add_edge(g.b(b), of_b);
  const auto spans = times(g.graph, g.schedule({{g.f(a), g.f(b), g.b(a), g.b(b)}}));
  CHECK(window(spans[of_a.row()]) == "4..14");
  CHECK(window(spans[of_b.row()]) == "14..24");
  CHECK(window(spans[also_b.row()]) == "24..34");
}

TEST_CASE("the chosen strategy decides the times of a pair") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, {fused(10, 20), fused(10, 29)});
  g.add_pair_edges(a);
  Schedule schedule = g.schedule({{g.f(a), g.b(a)}});
  OrderEvaluator evaluator(g.graph);
  CHECK(evaluator.evaluate(schedule).makespan == ns(30));
  schedule.chosen[0] = StrategyId(1);
  CHECK(evaluator.evaluate(schedule).makespan == ns(39));
}

TEST_CASE("passes and collectives go at the speed of their rank, transfers do not") {
  GraphBuilder g(1);
  const RankId slow = g.add_rank({CellId(1)}, 0.5);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const PairId b = g.add_pair(slow, Passes::Fused, fused(10, 15));
  const PairId c = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
  g.add_transfer(g.f(a), g.f(b), ns(4), ns(1));
  g.add_pair_edges(b);
  const TaskId back = g.add_transfer(g.b(b), g.f(c), ns(4), ns(1));
  const TaskId step = g.add_task(Op::Optimizer, Lane::Compute, slow, ns(3));
  g.add_edge(g.b(b), step);
  const auto spans = times(g.graph, g.schedule({{g.f(a), g.f(c)}, {g.f(b), g.b(b)}}));
  CHECK(window(spans[g.f(b).row()]) == "15..35");
  CHECK(window(spans[g.b(b).row()]) == "35..65");
  CHECK(window(spans[back.row()]) == "65..70");
  CHECK(window(spans[step.row()]) == "65..71");
}

TEST_CASE("an evaluator gives the same times whatever it evaluated before") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank1, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  g.add_transfer(g.f(a), g.f(b), ns(5));
  g.add_transfer(g.b(b), g.b(a), ns(5));
  const TaskId step = g.add_task(Op::Optimizer, Lane::Compute, kRank0, ns(3));
  g.add_edge(g.b(a), step);
  const Schedule good = g.schedule({{g.f(a), g.b(a)}, {g.f(b), g.b(b)}});
  const Schedule stuck = g.schedule({{g.b(a), g.f(a)}, {g.f(b), g.b(b)}});
  OrderEvaluator evaluator(g.graph);
  const Timeline first = evaluator.evaluate(good);
  CHECK(error_of([&] { evaluator.time(stuck); }).kind() == ErrorKind::Input);
  CHECK(evaluator.evaluate(good) == first);
  CHECK(first.makespan == ns(70));
  CHECK(first.iteration == ns(73));
}

TEST_CASE("makespan runs from the first pass to the last, iteration to the last task") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  std::vector<Span> spans = {{at(5), at(15)}};
  Timeline t = summarize(g.graph, spans);
  CHECK(t.makespan == ns(10));
  CHECK(t.iteration == ns(10));
  g.add_edge(g.f(a), g.add_task(Op::Optimizer, Lane::Compute, kRank0, ns(3)));
  spans.push_back({at(20), at(23)});
  t = summarize(g.graph, spans);
  CHECK(t.makespan == ns(10));
  CHECK(t.iteration == ns(18));
  CHECK(t.spans == spans);
}

TEST_CASE("nothing to do takes no time") {
  const GraphBuilder g(2);
  OrderEvaluator evaluator(g.graph);
  const Timeline t = evaluator.evaluate(g.schedule({{}, {}}));
  CHECK(t.makespan == ns(0));
  CHECK(t.iteration == ns(0));
  CHECK(t.memory.size() == 2);
}

}  // namespace
}  // namespace dipsim
