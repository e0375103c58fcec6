// SPDX-License-Identifier: Apache-2.0
// What a transfer queues behind.
#include "sim/engine/engine.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

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
  strategy.mode = RecomputeMode::Offload;
  strategy.copy = ns(6);
  const PairId a = g.add_pair(kRank0, Passes::Fused, strategy);
  const PairId x = g.add_pair(kRank1, Passes::ForwardOnly, fused(1, 0));
  const PairId between = g.add_pair(kRank0, Passes::ForwardOnly, fused(0, 0));
  g.add_pair_edges(a);
  const TaskId transfer = g.add_transfer(g.f(a), g.f(x), ns(10));
  g.add_offload(a);
  Schedule schedule = g.schedule({{g.f(a), g.f(between), g.b(a)}, {g.f(x)}});
  schedule.offloads = {{a, g.f(between), g.f(between)}};
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

}  // namespace
}  // namespace dipsim
