// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.hpp"

#include "sim/graph/order_evaluator.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
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
constexpr RankId kRank2{2};

/// Five transfers of 10 among three ranks, ready one nanosecond after the other.
struct Traffic {
  GraphBuilder g{3};
  std::vector<TaskId> sources;
  std::vector<TaskId> sinks;
  // The time of its source, on top of the sources before it on the same rank.
  TaskId first_01 = send(kRank0, kRank1, 0);   // ready at 0
  TaskId second_01 = send(kRank0, kRank1, 1);  // at 1
  TaskId back_10 = send(kRank1, kRank0, 2);    // at 2
  TaskId other_02 = send(kRank0, kRank2, 2);   // at 3
  TaskId into_21 = send(kRank2, kRank1, 4);    // at 4

  TaskId send(RankId from, RankId to, std::int64_t source_time) {
    const PairId source = g.add_pair(from, Passes::ForwardOnly, fused(source_time, 0));
    const PairId sink = g.add_pair(to, Passes::ForwardOnly, fused(1, 0));
    sources.push_back(g.f(source));
    sinks.push_back(g.f(sink));
    return g.add_transfer(g.f(source), g.f(sink), ns(10));
  }

  /// All sources first, then all sinks.
  [[nodiscard]] Schedule schedule() const {
    std::vector<std::vector<TaskId>> orders(3);
    for (const std::vector<TaskId>* passes : {&sources, &sinks}) {
      for (const TaskId pass : *passes) {
        orders[g.graph.task(pass).rank.row()].push_back(pass);
      }
    }
    return g.schedule(orders);
  }

  /// When each transfer takes place, in the order above.
  [[nodiscard]] std::string windows(LanePolicy lanes) const {
    EngineOptions options;
    options.lanes = lanes;
    const Timeline t = simulate(g.graph, schedule(), options);
    std::string out;
    for (const TaskId each : {first_01, second_01, back_10, other_02, into_21}) {
      out += (out.empty() ? "" : " ") + window(t.spans[each.row()]);
    }
    return out;
  }
};

TEST_CASE("by pair and direction, a transfer queues only behind earlier ones the same way") {
  CHECK(Traffic().windows(LanePolicy::PairDirection) == "0..10 10..20 2..12 3..13 4..14");
}

TEST_CASE("by pair, a transfer queues behind earlier ones between the two ranks, either way") {
  CHECK(Traffic().windows(LanePolicy::Pair) == "0..10 10..20 20..30 3..13 4..14");
}

TEST_CASE("by rank, a transfer queues behind earlier ones of the same sender") {
  CHECK(Traffic().windows(LanePolicy::Rank) == "0..10 10..20 2..12 20..30 4..14");
}

TEST_CASE("by copy engine, a transfer queues behind all that its sender or receiver moves") {
  CHECK(Traffic().windows(LanePolicy::CopyEngine) == "0..10 10..20 20..30 30..40 40..50");
}

TEST_CASE("copies share the copy engine with transfers, and have lanes of their own else") {
  GraphBuilder g(2);
  Strategy strategy = fused(0, 5);
  strategy.copy = ns(6);
  const PairId a = g.add_pair(kRank0, Passes::Fused, strategy);
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  g.add_pair_edges(a);
  const TaskId transfer = g.add_transfer(g.f(a), g.f(x), ns(10));
  g.add_offload(a);
  const Schedule schedule = g.schedule({{g.f(a), g.b(a)}, {g.f(x)}});
  const auto spans = [&](LanePolicy lanes) {
    EngineOptions options;
    options.lanes = lanes;
    return simulate(g.graph, schedule, options).spans;
  };
  const auto apart = spans(LanePolicy::Rank);
  CHECK(window(apart[transfer.row()]) == "0..10");
  CHECK(window(apart[g.graph.pair(a).copy_out.row()]) == "0..6");
  CHECK(window(apart[g.graph.pair(a).copy_in.row()]) == "6..12");
  const auto shared = spans(LanePolicy::CopyEngine);
  CHECK(window(shared[transfer.row()]) == "0..10");
  CHECK(window(shared[g.graph.pair(a).copy_out.row()]) == "10..16");
  CHECK(window(shared[g.graph.pair(a).copy_in.row()]) == "16..22");
}

TEST_CASE("only the time on the link occupies a queue, latency does not") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(0, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const TaskId first = g.add_transfer(g.f(a), g.f(x), ns(10), ns(100));
  const TaskId second = g.add_transfer(g.f(a), g.f(x), ns(10), ns(100));
  for (const LanePolicy lanes :
       {LanePolicy::PairDirection, LanePolicy::Pair, LanePolicy::Rank, LanePolicy::CopyEngine}) {
    EngineOptions options;
    options.lanes = lanes;
    const Timeline t = simulate(g.graph, g.schedule({{g.f(a)}, {g.f(x)}}), options);
    CHECK(window(t.spans[first.row()]) == "0..110");
    CHECK(window(t.spans[second.row()]) == "10..120");
  }
}

EngineOptions rendezvous() {
  EngineOptions options;
  options.send = SendMode::Rendezvous;
  return options;
}

TEST_CASE(
    "under rendezvous a transfer starts when the receiver has reached the pass that needs it") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId own = g.add_pair(kRank1, Passes::ForwardOnly, fused(20, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const TaskId transfer = g.add_transfer(g.f(a), g.f(x), ns(4), ns(2));
  const Schedule schedule = g.schedule({{g.f(a)}, {g.f(own), g.f(x)}});
  CHECK(window(simulate(g.graph, schedule).spans[transfer.row()]) == "5..11");
  const Timeline t = simulate(g.graph, schedule, rendezvous());
  CHECK(window(t.spans[transfer.row()]) == "20..26");
  CHECK(window(t.spans[g.f(x).row()]) == "26..27");
  // Where the receiver is early it waits for the data as under eager sends.
  const Schedule early = g.schedule({{g.f(a)}, {g.f(x), g.f(own)}});
  CHECK(window(simulate(g.graph, early, rendezvous()).spans[transfer.row()]) == "5..11");
}

TEST_CASE("under rendezvous a pass posts all its receives, and a shared one is posted once") {
  GraphBuilder g(3);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
  const PairId b = g.add_pair(kRank2, Passes::ForwardOnly, fused(2, 0));
  const PairId own = g.add_pair(kRank1, Passes::ForwardOnly, fused(10, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(3, 0));
  const PairId y = g.add_pair(kRank1, Passes::ForwardOnly, fused(3, 0));
  const TaskId shared = g.add_transfer(g.f(a), g.f(x), ns(4));
  g.add_edge(shared, g.f(y));
  const TaskId other = g.add_transfer(g.f(b), g.f(x), ns(6));
  const Timeline t =
      simulate(g.graph, g.schedule({{g.f(a)}, {g.f(own), g.f(x), g.f(y)}, {g.f(b)}}), rendezvous());
  CHECK(window(t.spans[shared.row()]) == "10..14");
  CHECK(window(t.spans[other.row()]) == "10..16");
  CHECK(window(t.spans[g.f(x).row()]) == "16..19");
  CHECK(window(t.spans[g.f(y).row()]) == "19..22");
}

TEST_CASE("under rendezvous both passes of an overlapped slot post their receives") {
  GraphBuilder g(2);
  const PairId early = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId late = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  const PairId far = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  g.add_pair_edges(early);
  const TaskId for_f = g.add_transfer(g.f(far), g.f(late), ns(3));
  const TaskId for_b = g.add_transfer(g.f(far), g.b(early), ns(3));
  g.graph.overlaps.push_back({g.f(late), g.b(early), ns(25)});
  Schedule schedule = g.schedule({{g.f(early)}});
  schedule.compute.push_back({g.f(late), g.b(early)});
  schedule.compute.add_row();
  schedule.compute.push_back({g.f(far), {}});
  const Timeline t = simulate(g.graph, schedule, rendezvous());
  CHECK(window(t.spans[for_f.row()]) == "10..13");
  CHECK(window(t.spans[for_b.row()]) == "13..16");
  CHECK(window(t.spans[g.f(late).row()]) == "16..41");
}

TEST_CASE("under rendezvous a transfer that no pass receives is sent as soon as it can be") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const TaskId reduce = g.add_task(Op::Collective, Lane::Gradient, kRank1, ns(2));
  const TaskId to_reduce = g.add_transfer(g.f(a), reduce, ns(4));
  const TaskId unread = g.add_transfer(g.f(a), g.f(x), ns(4));
  g.graph.edges.pop_back();
  const Timeline t = simulate(g.graph, g.schedule({{g.f(a)}, {g.f(x)}}), rendezvous());
  CHECK(window(t.spans[to_reduce.row()]) == "5..9");
  CHECK(window(t.spans[unread.row()]) == "9..13");
  CHECK(window(t.spans[reduce.row()]) == "9..11");
}

/// Rank 0 computes a, then b, and sends both; rank 1 needs b's result first.
struct Crossed {
  GraphBuilder g{2};
  PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  PairId use_a = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  PairId use_b = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  TaskId send_a = g.add_transfer(g.f(a), g.f(use_a), ns(3));
  TaskId send_b = g.add_transfer(g.f(b), g.f(use_b), ns(3));

  [[nodiscard]] Schedule schedule(const std::vector<TaskId>& sends) const {
    Schedule made = g.schedule({{g.f(a), g.f(b)}, {g.f(use_b), g.f(use_a)}});
    if (!sends.empty()) {
      made.comm.add_row(sends);
      made.comm.add_row();
    }
    return made;
  }
};

TEST_CASE("a fixed order of sends holds a ready transfer back until its turn") {
  const Crossed crossed;
  const auto spans = [&](const std::vector<TaskId>& sends) {
    return simulate(crossed.g.graph, crossed.schedule(sends)).spans;
  };
  const auto free = spans({});
  CHECK(window(free[crossed.send_a.row()]) == "5..8");
  CHECK(window(free[crossed.send_b.row()]) == "10..13");
  const auto in_order = spans({crossed.send_a, crossed.send_b});
  CHECK(window(in_order[crossed.send_a.row()]) == "5..8");
  const auto reversed = spans({crossed.send_b, crossed.send_a});
  CHECK(window(reversed[crossed.send_b.row()]) == "10..13");
  CHECK(window(reversed[crossed.send_a.row()]) == "13..16");
}

TEST_CASE("an order that deadlocks only when sends wait for receives prints the cycle") {
  const Crossed crossed;
  const Schedule schedule = crossed.schedule({crossed.send_a, crossed.send_b});
  CHECK(simulate(crossed.g.graph, schedule).makespan == ns(15));
  const Error error = error_of([&] { simulate(crossed.g.graph, schedule, rendezvous()); });
  CHECK(error.kind() == ErrorKind::Input);
  const std::string text = error.what();
  CHECK(text.find("deadlock") != std::string::npos);
  CHECK(text.find("a cycle of 3 waits") != std::string::npos);
  // send_b waits for send_a (its turn), which waits for use_b (to be posted), which needs send_b.
  const TaskGraph& graph = crossed.g.graph;
  CHECK(text.find(describe(graph, crossed.send_b) + " waits for " +
                  describe(graph, crossed.send_a)) != std::string::npos);
  CHECK(text.find(describe(graph, crossed.send_a) + " waits for " +
                  describe(graph, crossed.g.f(crossed.use_b))) != std::string::npos);
  CHECK(simulate(crossed.g.graph, crossed.schedule({}), rendezvous()).makespan > ns(0));
}

TEST_CASE("a very long fixed order of sends is no problem") {
  GraphBuilder g(2);
  constexpr std::size_t kSends = 200'000;
  // The first in the order has its data last, so that all others leave at once.
  std::vector<TaskId> sends;
  std::vector<TaskId> sources;
  for (std::size_t k = 0; k < kSends; ++k) {
    const PairId source = g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0));
    sources.push_back(g.f(source));
  }
  const PairId sink = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  for (const TaskId source : sources) {
    sends.push_back(g.add_transfer(source, g.f(sink), ns(1)));
  }
  std::swap(sends.front(), sends.back());
  Schedule schedule = g.schedule({sources, {g.f(sink)}});
  schedule.comm.add_row(sends);
  schedule.comm.add_row();
  const Timeline t = simulate(g.graph, schedule);
  CHECK(t.makespan == ns(2 * static_cast<std::int64_t>(kSends) + 1));
}

TEST_CASE("the host issues the passes of a rank one by one, ahead of their turn") {
  GraphBuilder g(2);
  std::vector<TaskId> passes;
  for (int k = 0; k < 4; ++k) {
    passes.push_back(g.f(g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0))));
  }
  const TaskId other = g.f(g.add_pair(kRank1, Passes::ForwardOnly, fused(10, 0)));
  const auto spans = [&](std::int64_t issue) {
    EngineOptions options;
    options.host_issue = ns(issue);
    return simulate(g.graph, g.schedule({passes, {other}}), options).spans;
  };
  const auto hidden = spans(4);  // issued at 4, 8, 12, 16: only the first one shows
  CHECK(window(hidden[passes[0].row()]) == "4..14");
  CHECK(window(hidden[passes[1].row()]) == "14..24");
  CHECK(window(hidden[passes[3].row()]) == "34..44");
  CHECK(window(hidden[other.row()]) == "4..14");  // every rank has its host
  const auto exposed = spans(15);                 // issued at 15, 30, 45, 60
  CHECK(window(exposed[passes[0].row()]) == "15..25");
  CHECK(window(exposed[passes[1].row()]) == "30..40");
  CHECK(window(exposed[passes[3].row()]) == "60..70");
}

TEST_CASE("collectives take a lane in the order in which they are ready, then by task") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId b = g.add_pair(kRank1, Passes::ForwardOnly, fused(7, 0));
  const GroupId both = g.add_group({kRank0, kRank1});
  const TaskId late = g.add_task(Op::Collective, Lane::Comm, kRank0, ns(10), both);
  const TaskId early = g.add_task(Op::Collective, Lane::Comm, kRank0, ns(10));
  const TaskId tied = g.add_task(Op::Collective, Lane::Comm, kRank1, ns(10));
  g.add_edge(g.f(a), early);
  g.add_edge(g.f(b), tied);
  g.add_edge(g.f(a), late);
  g.add_edge(g.f(b), late);
  const auto spans = simulate(g.graph, g.schedule({{g.f(a)}, {g.f(b)}})).spans;
  CHECK(window(spans[early.row()]) == "5..15");
  CHECK(window(spans[late.row()]) == "15..25");  // ready at 7, before `tied` by its number
  CHECK(window(spans[tied.row()]) == "25..35");
}

TEST_CASE("jitter is a matter of the seed alone and has mean 1") {
  GraphBuilder g(1);
  std::vector<TaskId> passes;
  for (int k = 0; k < 10'000; ++k) {
    passes.push_back(g.f(g.add_pair(kRank0, Passes::ForwardOnly, fused(1'000'000, 0))));
  }
  const Schedule schedule = g.schedule({passes});
  EngineOptions options;
  options.jitter = 0.5;
  options.seed = 1;
  const Timeline first = simulate(g.graph, schedule, options);
  CHECK(simulate(g.graph, schedule, options) == first);
  options.seed = 2;
  CHECK(simulate(g.graph, schedule, options).makespan != first.makespan);

  double sum = 0.0;
  double logs = 0.0;
  double squares = 0.0;
  for (const Span& span : first.spans) {
    const double factor = static_cast<double>((span.end - span.start).count()) * 1e-6;
    sum += factor;
    logs += std::log(factor);
    squares += std::log(factor) * std::log(factor);
  }
  // Within five standard deviations of the estimates.
  const auto count = static_cast<double>(first.spans.size());
  const double variance = squares / count - (logs / count) * (logs / count);
  CHECK(std::abs(sum / count - 1.0) < 0.027);  // the median is exp(-1/8) = 0.88
  CHECK(std::abs(variance - 0.25) < 0.018);
}

TEST_CASE("jitter touches transfers and collectives too, and nothing when it is zero") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(1000, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1000, 0));
  const TaskId transfer = g.add_transfer(g.f(a), g.f(x), ns(1000));
  const TaskId reduce = g.add_task(Op::Collective, Lane::Gradient, kRank1, ns(1000));
  g.add_edge(g.f(x), reduce);
  const Schedule schedule = g.schedule({{g.f(a)}, {g.f(x)}});
  EngineOptions options;
  options.seed = 5;
  CHECK(simulate(g.graph, schedule, options) == simulate(g.graph, schedule));
  options.jitter = 0.3;
  const Timeline t = simulate(g.graph, schedule, options);
  for (const TaskId task : {g.f(a), transfer, g.f(x), reduce}) {
    CHECK(t.spans[task.row()].end - t.spans[task.row()].start != ns(1000));
  }
}

TEST_CASE("a task jitters the same whatever the schedule around it") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(1000, 0));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(1000, 0));
  EngineOptions options;
  options.jitter = 0.3;
  const auto length = [&](const std::vector<TaskId>& order) {
    const Span span = simulate(g.graph, g.schedule({order}), options).spans[g.f(a).row()];
    return (span.end - span.start).count();
  };
  CHECK(length({g.f(a), g.f(b)}) == length({g.f(b), g.f(a)}));
}

TEST_CASE("every rank computes at its own speed") {
  GraphBuilder g(0);
  const RankId slow = g.add_rank({CellId(0)}, 0.5);
  const RankId fast = g.add_rank({CellId(1)}, 4.0);
  const PairId a = g.add_pair(slow, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(fast, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  const TaskId transfer = g.add_transfer(g.f(a), g.f(b), ns(8));
  g.add_transfer(g.b(b), g.b(a), ns(8));
  const auto spans = simulate(g.graph, g.schedule({{g.f(a), g.b(a)}, {g.f(b), g.b(b)}})).spans;
  CHECK(window(spans[g.f(a).row()]) == "0..20");
  CHECK(window(spans[transfer.row()]) == "20..28");
  CHECK(window(spans[g.f(b).row()]) == "28..31");  // 2.5, rounded up
  CHECK(window(spans[g.b(b).row()]) == "31..36");
  CHECK(window(spans[g.b(a).row()]) == "44..84");
}

TEST_CASE("a deadlock of the schedule itself is an input error with the cycle") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank1, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  g.add_transfer(g.f(a), g.f(b), ns(5));
  g.add_transfer(g.b(b), g.b(a), ns(5));
  const Schedule stuck = g.schedule({{g.b(a), g.f(a)}, {g.f(b), g.b(b)}});
  for (const SendMode send : {SendMode::Eager, SendMode::Rendezvous}) {
    EngineOptions options;
    options.send = send;
    const Error error = error_of([&] { simulate(g.graph, stuck, options); });
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(std::string(error.what()).find("deadlock") != std::string::npos);
  }
}

TEST_CASE("deadlocks through overlapped slots and among collectives are input errors") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  g.add_pair_edges(a);
  g.graph.overlaps.push_back({g.f(b), g.b(a), ns(25)});
  SUBCASE("the backward needs a forward that is ordered after its slot") {
    Schedule schedule = g.schedule({{}});
    schedule.compute.push_back({g.f(b), g.b(a)});
    schedule.compute.push_back({g.f(a), {}});
    CHECK(error_of([&] { simulate(g.graph, schedule); }).kind() == ErrorKind::Input);
  }
  SUBCASE("two gathers wait for each other") {
    const TaskId one = g.add_task(Op::Gather, Lane::Comm, kRank0, ns(1));
    const TaskId two = g.add_task(Op::Gather, Lane::Comm, kRank0, ns(1));
    g.add_edge(one, two);
    g.add_edge(two, one);
    g.add_edge(two, g.f(b));
    CHECK(error_of([&] { simulate(g.graph, g.schedule({{g.f(a), g.f(b), g.b(a)}})); }).kind() ==
          ErrorKind::Input);
  }
}

TEST_CASE("invalid schedules and options are input errors") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  g.add_pair_edges(a);
  const Schedule good = g.schedule({{g.f(a), g.b(a)}});
  CHECK(error_of([&] { simulate(g.graph, g.schedule({{g.f(a)}})); }).kind() == ErrorKind::Input);
  EngineOptions options;
  options.host_issue = ns(-1);
  CHECK(error_of([&] { simulate(g.graph, good, options); }).kind() == ErrorKind::Input);
  for (const double jitter : {-0.1, 1.5, std::nan(""), std::numeric_limits<double>::infinity()}) {
    options = {};
    options.jitter = jitter;
    CHECK(error_of([&] { simulate(g.graph, good, options); }).kind() == ErrorKind::Input);
  }
}

TEST_CASE("two passes that the graph does not let overlap are refused as one slot") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 20));
  const PairId b = g.add_pair(kRank0, Passes::ForwardOnly, fused(10, 0));
  g.add_pair_edges(a);
  Schedule schedule = g.schedule({{g.f(a)}});
  schedule.compute.push_back({g.f(b), g.b(a)});
  CHECK(error_of([&] { simulate(g.graph, schedule); }).kind() == ErrorKind::Input);
}

TEST_CASE("nothing to do takes no time") {
  const GraphBuilder g(2);
  const Timeline t = simulate(g.graph, g.schedule({{}, {}}));
  CHECK(t.makespan == ns(0));
  CHECK(t.iteration == ns(0));
}

}  // namespace
}  // namespace dipsim
