// SPDX-License-Identifier: Apache-2.0
// The engine on networks made by hand: what shares a link, and what computes beside communication.
#include "sim/core/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"
#include "tests/support/random_case.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::window;

constexpr RankId kRank0{0};
constexpr RankId kRank1{1};
constexpr RankId kRank2{2};

/// A network without flows, of links of 100 bytes per second.
FlowNetwork no_flows(const TaskGraph& graph, std::size_t links) {
  FlowNetwork network;
  network.capacity.assign(links, 100);
  network.route.assign(graph.tasks.size(), -1);
  network.speed.assign(graph.tasks.size(), 0);
  return network;
}

/// Makes a task a flow of this speed over one link.
void add_flow(FlowNetwork& network, TaskId task, std::int32_t link, std::int64_t speed = 100) {
  network.route[task.row()] = static_cast<std::int32_t>(network.routes.size());
  network.speed[task.row()] = speed;
  network.routes.add_row(std::vector<LinkUse>{{link, kStreamUnit}});
}

/// Sources on rank 0 that end at the given times send to one rank each.
struct Sends {
  GraphBuilder g{4};
  std::vector<TaskId> transfers;
  std::vector<std::vector<TaskId>> orders{4};

  TaskId send(std::int64_t source_time, RankId to, std::int64_t time, std::int64_t latency = 0) {
    const PairId source = g.add_pair(kRank0, Passes::ForwardOnly, fused(source_time, 0));
    const PairId sink = g.add_pair(to, Passes::ForwardOnly, fused(1, 0));
    orders[0].push_back(g.f(source));
    orders[to.row()].push_back(g.f(sink));
    transfers.push_back(g.add_transfer(g.f(source), g.f(sink), ns(time), ns(latency)));
    return transfers.back();
  }

  [[nodiscard]] std::string windows(const FlowNetwork& network) const {
    const Timeline t = simulate(g.graph, g.schedule(orders), {}, network);
    std::string out;
    for (const TaskId each : transfers) {
      out += (out.empty() ? "" : " ") + window(t.spans[each.row()]);
    }
    return out;
  }
};

TEST_CASE("two transfers over one link take twice as long, over two links they do not") {
  Sends s;
  s.send(0, kRank1, 10);
  s.send(0, kRank2, 10);
  FlowNetwork shared = no_flows(s.g.graph, 2);
  add_flow(shared, s.transfers[0], 0);
  add_flow(shared, s.transfers[1], 0);
  CHECK(s.windows(shared) == "0..20 0..20");
  FlowNetwork apart = no_flows(s.g.graph, 2);
  add_flow(apart, s.transfers[0], 0);
  add_flow(apart, s.transfers[1], 1);
  CHECK(s.windows(apart) == "0..10 0..10");
}

TEST_CASE("a transfer shares for as long as another one is there") {
  Sends s;
  s.send(0, kRank1, 10);
  s.send(5, kRank2, 10);
  FlowNetwork network = no_flows(s.g.graph, 1);
  add_flow(network, s.transfers[0], 0);
  add_flow(network, s.transfers[1], 0);
  // Alone from 0 to 5, both at half speed to 15, the second alone to 20.
  CHECK(s.windows(network) == "0..15 5..20");
}

TEST_CASE("a slow transfer keeps its speed and the others share what it leaves") {
  Sends s;
  s.send(0, kRank1, 40);
  s.send(0, kRank2, 40);
  s.send(0, RankId(3), 40);
  FlowNetwork network = no_flows(s.g.graph, 1);
  add_flow(network, s.transfers[0], 0, 20);
  add_flow(network, s.transfers[1], 0, 80);
  add_flow(network, s.transfers[2], 0, 80);
  // 20, 40 and 40 of 100: after 40 the others have half left and the link to themselves, 50 each.
  CHECK(s.windows(network) == "0..40 0..72 0..72");
}

TEST_CASE("what queues is no flow yet, and latency is not stretched") {
  Sends s;
  s.send(0, kRank1, 10, 100);
  s.send(0, kRank1, 10, 100);
  s.send(0, kRank2, 10);
  FlowNetwork network = no_flows(s.g.graph, 1);
  for (const TaskId transfer : s.transfers) {
    add_flow(network, transfer, 0);
  }
  // First and third share up to 20; the second starts then and is alone.
  CHECK(s.windows(network) == "0..120 20..130 0..20");
}

TEST_CASE("a collective and a transfer share a link, copies and transfers too") {
  Sends s;
  s.send(0, kRank1, 10);
  const TaskId reduction =
      s.g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(30), s.g.add_group({kRank0, kRank2}));
  FlowNetwork network = no_flows(s.g.graph, 1);
  add_flow(network, s.transfers[0], 0);
  add_flow(network, reduction, 0);
  const Timeline t = simulate(s.g.graph, s.g.schedule(s.orders), {}, network);
  CHECK(window(t.spans[s.transfers[0].row()]) == "0..20");
  CHECK(window(t.spans[reduction.row()]) == "0..40");
  CHECK(t.lost.flows == ns(20));
  CHECK(t.lost.passes == ns(0));
}

/// A pass of 100 on rank 0, and a transfer of `time` from there that is ready at 0.
struct Beside {
  GraphBuilder g{3};
  PairId source = g.add_pair(kRank0, Passes::ForwardOnly, fused(0, 0));
  PairId pass = g.add_pair(kRank0, Passes::ForwardOnly, fused(100, 0));
  PairId sink = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  PairId peer = g.add_pair(kRank1, Passes::ForwardOnly, fused(100, 0));

  [[nodiscard]] Timeline run(const FlowNetwork& network, const EngineOptions& options = {}) const {
    return simulate(g.graph, g.schedule({{g.f(source), g.f(pass)}, {g.f(peer), g.f(sink)}, {}}),
                    options, network);
  }
};

TEST_CASE("a pass is slowed while a transfer of its rank is under way, at both ends") {
  Beside b;
  const TaskId transfer = b.g.add_transfer(b.g.f(b.source), b.g.f(b.sink), ns(20), ns(50));
  FlowNetwork network = no_flows(b.g.graph, 1);
  network.compute_slowdown = 0.25;
  add_flow(network, transfer, 0);
  const Timeline t = b.run(network);
  // 20 at 1/1.25 is 16 of 100; latency costs nothing.
  CHECK(window(t.spans[b.g.f(b.pass).row()]) == "0..104");
  CHECK(window(t.spans[b.g.f(b.peer).row()]) == "0..104");
  CHECK(window(t.spans[transfer.row()]) == "0..70");
  CHECK(t.lost.passes == ns(8));
  CHECK(t.lost.flows == ns(0));
}

TEST_CASE("several flows of a rank slow its pass no more than one") {
  Beside b;
  const TaskId transfer = b.g.add_transfer(b.g.f(b.source), b.g.f(b.sink), ns(20));
  const TaskId reduction =
      b.g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(30), b.g.add_group({kRank0, kRank2}));
  FlowNetwork network = no_flows(b.g.graph, 2);
  network.compute_slowdown = 0.25;
  add_flow(network, transfer, 0);
  add_flow(network, reduction, 1);
  const Timeline t = b.run(network);
  CHECK(window(t.spans[b.g.f(b.pass).row()]) == "0..106");
  CHECK(window(t.spans[b.g.f(b.peer).row()]) == "0..104");
}

TEST_CASE("a pass that starts amid communication is slowed from its start") {
  Beside b;
  const TaskId reduction = b.g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(30));
  FlowNetwork network = no_flows(b.g.graph, 1);
  network.compute_slowdown = 0.25;
  add_flow(network, reduction, 0);
  EngineOptions options;
  options.host_issue = ns(5);  // the second pass of rank 0 is issued at 10
  CHECK(window(b.run(network, options).spans[b.g.f(b.pass).row()]) == "10..114");
}

TEST_CASE("copies to the host share links but do not slow passes") {
  GraphBuilder g(1);
  Strategy strategy = fused(0, 5);
  strategy.mode = RecomputeMode::Offload;
  strategy.copy = ns(40);
  const PairId a = g.add_pair(kRank0, Passes::Fused, strategy);
  const PairId between = g.add_pair(kRank0, Passes::ForwardOnly, fused(100, 0));
  const PairId after = g.add_pair(kRank0, Passes::ForwardOnly, fused(100, 0));
  g.add_pair_edges(a);
  g.add_offload(a);
  const TaskId reduction = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(10));
  Schedule schedule = g.schedule({{g.f(a), g.f(between), g.f(after), g.b(a)}});
  schedule.offloads = {{a, g.f(after), g.f(after)}};
  FlowNetwork network = no_flows(g.graph, 1);
  network.compute_slowdown = 0.25;
  add_flow(network, g.graph.pair(a).copy_out, 0);
  add_flow(network, reduction, 0);
  const Timeline t = simulate(g.graph, schedule, {}, network);
  CHECK(window(t.spans[reduction.row()]) == "0..20");
  CHECK(window(t.spans[g.graph.pair(a).copy_out.row()]) == "0..50");
  CHECK(window(t.spans[g.f(between).row()]) == "0..104");  // 20 beside the reduction
}

TEST_CASE("an overlapped forward and backward end together, slowed as one") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(kRank0, Passes::Fused, fused(10, 10));
  const PairId b = g.add_pair(kRank0, Passes::Fused, fused(10, 10));
  g.add_pair_edges(a);
  g.add_pair_edges(b);
  g.graph.overlaps.push_back({.f = g.f(b), .b = g.b(a), .together = ns(16)});
  const TaskId reduction = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(20));
  Schedule schedule = g.schedule({{g.f(a)}});
  schedule.compute.push_back({.task = g.f(b), .together = g.b(a)});
  schedule.compute.push_back({.task = g.b(b), .together = {}});
  FlowNetwork network = no_flows(g.graph, 1);
  network.compute_slowdown = 0.25;
  add_flow(network, reduction, 0);
  const Timeline t = simulate(g.graph, schedule, {}, network);
  // F of a takes 12.5, rounded; then 8 are left of the reduction, which hold back 1.6 of 16.
  CHECK(t.spans[g.f(b).row()] == t.spans[g.b(a).row()]);
  CHECK(window(t.spans[g.f(a).row()]) == "0..13");
  CHECK(window(t.spans[g.f(b).row()]) == "13..30");
}

TEST_CASE("contention without a cluster is refused") {
  GraphBuilder g(1);
  const TaskId pass = g.f(g.add_pair(kRank0, Passes::ForwardOnly, fused(1, 0)));
  EngineOptions options;
  options.contention = true;
  const Error error =
      test::error_of([&] { static_cast<void>(simulate(g.graph, g.schedule({{pass}}), options)); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.where() == "engine: contention");
}

/// Every task that is no pass is a flow over one of a few links.
FlowNetwork random_network(const TaskGraph& graph, std::int64_t capacity, double slowdown) {
  constexpr std::int32_t kLinks = 3;
  FlowNetwork network = no_flows(graph, kLinks);
  network.capacity.assign(kLinks, capacity);
  network.compute_slowdown = slowdown;
  for (std::int32_t link = 0; link < kLinks; ++link) {
    network.routes.add_row(std::vector<LinkUse>{{link, kStreamUnit}});
  }
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (!is_pass(graph.tasks[i].op) && graph.tasks[i].op != Op::Optimizer) {
      network.route[i] = static_cast<std::int32_t>(i) % kLinks;
      network.speed[i] = 100;
    }
  }
  return network;
}

test::CaseShape random_shape() {
  test::CaseShape shape;
  shape.ranks = *rc::gen::inRange<std::size_t>(1, 7);
  shape.pairs = *rc::gen::inRange<std::size_t>(1, 40);
  shape.shared_cells = *rc::gen::arbitrary<bool>();
  shape.speeds = *rc::gen::arbitrary<bool>();
  shape.epilogue = *rc::gen::arbitrary<bool>();
  shape.overlaps = *rc::gen::arbitrary<bool>();
  shape.offloads = *rc::gen::arbitrary<bool>();
  return shape;
}

EngineOptions random_options() {
  EngineOptions options;
  options.lanes = static_cast<LanePolicy>(*rc::gen::inRange(0, 4));
  options.send = static_cast<SendMode>(*rc::gen::inRange(0, 3));
  options.host_issue = ns(*rc::gen::element(0, 0, 3, 20));
  options.jitter = *rc::gen::element(0.0, 0.0, 0.3);
  return options;
}

TEST_CASE("links that are wide enough and no slowdown change no nanosecond") {
  CHECK(rc::check("nothing to share", [] {
    const test::CaseShape shape = random_shape();
    const EngineOptions options = random_options();
    const std::uint64_t first = *rc::gen::arbitrary<std::uint32_t>();
    for (std::uint64_t seed = first; seed < first + 10; ++seed) {
      const test::RandomCase one = random_case(shape, seed);
      const FlowNetwork network = random_network(one.graph, 1'000'000, 0.0);
      RC_ASSERT(simulate(one.graph, one.schedule, options, network) ==
                simulate(one.graph, one.schedule, options));
    }
  }));
}

TEST_CASE("wide links and no slowdown equal the order evaluator") {
  CHECK(rc::check("order evaluator", [] {
    const test::CaseShape shape = random_shape();
    const std::uint64_t first = *rc::gen::arbitrary<std::uint32_t>();
    for (std::uint64_t seed = first; seed < first + 10; ++seed) {
      const test::RandomCase one = random_case(shape, seed);
      const FlowNetwork network = random_network(one.graph, 1'000'000, 0.0);
      OrderEvaluator evaluator(one.graph);
      RC_ASSERT(simulate(one.graph, one.schedule, {}, network) == evaluator.evaluate(one.schedule));
    }
  }));
}

TEST_CASE("narrow links and slowdown keep precedence, and nothing is faster than alone") {
  CHECK(rc::check("feasible", [] {
    const test::CaseShape shape = random_shape();
    EngineOptions options = random_options();
    options.jitter = 0.0;
    const std::uint64_t first = *rc::gen::arbitrary<std::uint32_t>();
    for (std::uint64_t seed = first; seed < first + 10; ++seed) {
      const test::RandomCase one = random_case(shape, seed);
      const FlowNetwork network = random_network(one.graph, 100, 0.25);
      const Timeline t = simulate(one.graph, one.schedule, options, network);
      RC_ASSERT(simulate(one.graph, one.schedule, options, network) == t);
      for (const Edge& edge : one.graph.edges) {
        RC_ASSERT(t.spans[edge.to.row()].start >= t.spans[edge.from.row()].end);
      }
      Duration slowed{0};
      for (std::size_t i = 0; i < one.graph.tasks.size(); ++i) {
        const Task& task = one.graph.tasks[i];
        const Duration alone = duration_of(one.graph, TaskId(i), one.schedule.chosen);
        const Duration took = t.spans[i].end - t.spans[i].start;
        if (is_pass(task.op) && one.graph.overlaps.empty()) {
          RC_ASSERT(took >= alone);
          slowed +=
              (took - alone) * static_cast<std::int64_t>(one.graph.rank(task.rank).cells.size());
        } else if (!is_pass(task.op)) {
          RC_ASSERT(took >= alone + task.latency);
        }
      }
      RC_ASSERT(!one.graph.overlaps.empty() || slowed == t.lost.passes);
    }
  }));
}

}  // namespace
}  // namespace dipsim
