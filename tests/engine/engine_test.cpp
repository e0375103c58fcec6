// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.hpp"

#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <cmath>
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
