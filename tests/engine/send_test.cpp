// SPDX-License-Identifier: Apache-2.0
// When a transfer may start: rendezvous, and a fixed order of sends.
#include "sim/engine/engine.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
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

TEST_CASE("a blocking sender computes nothing until its message has arrived") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId next = g.add_pair(kRank0, Passes::ForwardOnly, fused(3, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  g.add_transfer(g.f(a), g.f(x), ns(4), ns(2));
  const Schedule schedule = g.schedule({{g.f(a), g.f(next)}, {g.f(x)}});
  CHECK(window(simulate(g.graph, schedule).spans[g.f(next).row()]) == "5..8");
  EngineOptions blocking;
  blocking.send = SendMode::Blocking;
  CHECK(window(simulate(g.graph, schedule, blocking).spans[g.f(next).row()]) == "11..14");
  // Its host issues each pass only then, and so does the receiver's.
  blocking.host_issue = ns(10);
  const Timeline t = simulate(g.graph, schedule, blocking);
  CHECK(window(t.spans[g.f(a).row()]) == "10..15");
  CHECK(window(t.spans[g.f(next).row()]) == "31..34");
  CHECK(window(t.spans[g.f(x).row()]) == "31..32");
}

TEST_CASE("blocking sends refuse a fixed order of sends") {
  GraphBuilder g(2);
  const PairId a = g.add_pair(kRank0, Passes::ForwardOnly, fused(5, 0));
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const TaskId transfer = g.add_transfer(g.f(a), g.f(x), ns(4));
  Schedule schedule = g.schedule({{g.f(a)}, {g.f(x)}});
  schedule.comm.add_row({&transfer, 1});
  schedule.comm.add_row();
  EngineOptions blocking;
  blocking.send = SendMode::Blocking;
  CHECK(error_of([&] { simulate(g.graph, schedule, blocking); }).kind() == ErrorKind::Input);
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

}  // namespace
}  // namespace dipsim
