// SPDX-License-Identifier: Apache-2.0
// Pairs that offload: times and memory by hand, and what a schedule must say about them.
#include "sim/core/error.hpp"
#include "sim/graph/deadlock.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {
namespace {

using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;
using test::window;

constexpr RankId kRank0{0};

/// Three pairs, last in, first out, F of 10 and B of 20 ns: F0 0..10, F1 10..20, F2 20..30, B2
/// 30..50, B1 50..70, B0 70..90. Each holds 10 bytes; one that offloads copies 8 of them.
struct Stack {
  GraphBuilder g{1};
  std::array<PairId, 3> pair;
  Schedule schedule;

  Stack() {
    Strategy keep = fused(10, 20);
    keep.f_to_i = Bytes{10};
    Strategy offload = keep;
    offload.mode = RecomputeMode::Offload;
    offload.offload = Bytes{8};
    for (PairId& each : pair) {
      each = g.add_pair(kRank0, Passes::Fused, {keep, offload});
      g.add_pair_edges(each);
      g.add_offload(each);
    }
    schedule = g.schedule({{f(0), f(1), f(2), b(2), b(1), b(0)}});
  }

  [[nodiscard]] TaskId f(std::size_t p) const { return g.f(pair[p]); }

  [[nodiscard]] TaskId b(std::size_t p) const { return g.b(pair[p]); }

  [[nodiscard]] TaskId out(std::size_t p) const { return g.graph.pair(pair[p]).copy_out; }

  [[nodiscard]] TaskId in(std::size_t p) const { return g.graph.pair(pair[p]).copy_in; }

  void offload(std::size_t p, std::int64_t copy, TaskId freed_before, TaskId fetched_after) {
    const StrategyId chosen(g.graph.pair(pair[p]).first_strategy.row() + 1);
    g.graph.strategies[chosen.row()].copy = ns(copy);
    schedule.chosen[pair[p].row()] = chosen;
    schedule.offloads.push_back({pair[p], freed_before, fetched_after});
  }

  [[nodiscard]] Timeline timeline() const { return OrderEvaluator(g.graph).evaluate(schedule); }

  [[nodiscard]] std::string at(TaskId task) const { return window(timeline().spans[task.row()]); }
};

TEST_CASE(
    "a copy out as long as the pass beside it is hidden, a longer one delays what needs room") {
  for (const std::int64_t more : {0, 3}) {
    Stack s;
    s.offload(0, 10 + more, s.f(2), s.f(2));
    CHECK(s.at(s.out(0)) == (more == 0 ? "10..20" : "10..23"));
    CHECK(s.at(s.f(2)) == (more == 0 ? "20..30" : "23..33"));
    CHECK(s.timeline().makespan == ns(90 + more));
  }
}

TEST_CASE("a copy in as long as the passes beside it is hidden, a longer one delays its backward") {
  for (const std::int64_t more : {0, 5}) {
    Stack s;
    s.offload(0, 20 + more, s.b(2), s.b(2));  // out 10..30 or 10..35
    const std::int64_t start = 50 + more;     // B2 has waited for the longer copy out
    CHECK(s.at(s.b(2)) == (more == 0 ? "30..50" : "35..55"));
    CHECK(s.at(s.in(0)) == std::to_string(start) + ".." + std::to_string(start + 20 + more));
    CHECK(s.at(s.b(1)) == (more == 0 ? "50..70" : "55..75"));
    CHECK(s.at(s.b(0)) == (more == 0 ? "70..90" : "80..100"));
  }
}

TEST_CASE("copies of one rank queue on their lane, out and in beside each other") {
  Stack s;
  s.offload(0, 14, s.b(2), s.b(2));
  s.offload(1, 6, s.b(2), s.b(2));
  CHECK(s.at(s.out(0)) == "10..24");
  CHECK(s.at(s.out(1)) == "24..30");
  // Both follow B2: in the order of the list.
  CHECK(s.at(s.in(0)) == "50..64");
  CHECK(s.at(s.in(1)) == "64..70");
  CHECK(s.at(s.b(1)) == "70..90");
  std::swap(s.schedule.offloads[0], s.schedule.offloads[1]);
  CHECK(s.at(s.in(1)) == "50..56");
  CHECK(s.at(s.in(0)) == "56..70");
  CHECK(s.at(s.b(1)) == "56..76");
}

TEST_CASE("the bytes of a pair are away from freed_before to fetched_after, whatever the times") {
  Stack s;
  CHECK(s.timeline().memory[0].peak == Bytes{30});
  for (const std::int64_t copy : {1, 10, 1000}) {
    Stack late = s;
    late.offload(0, copy, s.f(2), s.b(2));
    // F0, F1 and their 20 bytes; then F2 and 22: the copy in of 8 waits for the end of B2.
    CHECK(late.timeline().memory[0].peak == Bytes{22});
    late.offload(1, copy, s.b(2), s.b(2));
    CHECK(late.timeline().memory[0].peak == Bytes{22});
  }
}

TEST_CASE("a pair that keeps its activations copies nothing, and its copies take no time") {
  Stack s;
  s.offload(1, 5, s.f(2), s.f(2));
  CHECK(s.at(s.out(0)) == "10..10");
  CHECK(s.at(s.in(0)) == "10..10");
  CHECK(s.at(s.out(1)) == "20..25");
}

TEST_CASE("a schedule says of every pair that offloads between which of its passes it is away") {
  using Change = std::function<void(Stack&)>;
  const auto set = [](auto freed, auto fetched) {
    return [=](Stack& s) {
      s.schedule.offloads[0].freed_before = freed(s);
      s.schedule.offloads[0].fetched_after = fetched(s);
    };
  };
  const auto f = [](std::size_t p) { return [=](const Stack& s) { return s.f(p); }; };
  const auto b = [](std::size_t p) { return [=](const Stack& s) { return s.b(p); }; };
  const auto task = [](int id) { return [=](const Stack&) { return TaskId(id); }; };
  const std::vector<std::pair<std::string_view, Change>> broken = {
      {"/offloads/0", set(f(0), b(2))},  // freed before its own F
      {"/offloads/0", set(b(2), f(2))},  // fetched before it is freed
      {"/offloads/0", set(f(2), b(0))},  // fetched after its own backward
      {"/offloads/0", set(task(99), b(2))},
      {"/offloads/0", set(f(2), task(-1))},
      {"/offloads/0", [](Stack& s) { s.schedule.offloads[0].freed_before = s.out(0); }},
      {"/offloads/0", [](Stack& s) { s.schedule.offloads[0].pair = PairId(7); }},
      {"/offloads/0", [](Stack& s) { s.schedule.offloads[0].pair = s.pair[1]; }},  // keeps
      {"/offloads/1", [](Stack& s) { s.schedule.offloads.push_back(s.schedule.offloads[0]); }},
      {"/offloads", [](Stack& s) { s.schedule.offloads.clear(); }},
      {"/offloads/0", [](Stack& s) {
         s.g.graph.pairs[0].copy_out = TaskId{};
         s.g.graph.pairs[0].copy_in = TaskId{};
       }}};
  for (std::size_t i = 0; i < broken.size(); ++i) {
    CAPTURE(i);
    Stack s;
    s.offload(0, 5, s.f(2), s.b(2));
    CHECK_NOTHROW(validate(s.g.graph, s.schedule));
    broken[i].second(s);
    const Error error = test::error_of([&] { validate(s.g.graph, s.schedule); });
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where().find(broken[i].first) != std::string::npos);
  }
}

TEST_CASE("windows on another rank are refused") {
  Stack s;
  s.offload(0, 5, s.f(2), s.b(2));
  const RankId other = s.g.add_rank({CellId(1)});
  const PairId alone = s.g.add_pair(other, Passes::ForwardOnly, fused(1, 0));
  s.schedule.compute.add_row();
  s.schedule.compute.push_back({s.g.f(alone), {}});
  s.schedule.chosen.push_back(s.g.graph.pair(alone).first_strategy);
  CHECK_NOTHROW(validate(s.g.graph, s.schedule));
  s.schedule.offloads[0].freed_before = s.g.f(alone);
  CHECK(test::error_of([&] { validate(s.g.graph, s.schedule); }).kind() == ErrorKind::Input);
}

TEST_CASE("a graph with copies has their edges, and only the mode offload copies") {
  Stack good;
  CHECK_NOTHROW(validate(good.g.graph));
  Stack cut;
  std::erase(cut.g.graph.edges, Edge{cut.in(0), cut.b(0)});
  CHECK(test::error_of([&] { validate(cut.g.graph); }).where().find("/pairs/0") !=
        std::string::npos);
  Stack keeps;
  keeps.g.graph.strategies[0].copy = ns(1);
  CHECK(test::error_of([&] { validate(keeps.g.graph); }).where().find("/strategies/0") !=
        std::string::npos);
}

TEST_CASE("the waits of offloads stand among those that a deadlock is printed from") {
  Stack s;
  s.offload(0, 5, s.f(2), s.b(2));
  const std::vector<WaitEdge> waits = schedule_waits(s.g.graph, s.schedule);
  const auto has = [&](TaskId task, TaskId needs) {
    return std::ranges::any_of(
        waits, [&](const WaitEdge& w) { return w.task == task && w.needs == needs; });
  };
  CHECK(has(s.f(2), s.out(0)));
  CHECK(has(s.in(0), s.b(2)));
  CHECK_FALSE(has(s.f(2), s.out(1)));
}

TEST_CASE("an order evaluator times schedules with and without offloads in turn") {
  Stack s;
  Schedule plain = s.schedule;
  s.offload(0, 25, s.b(2), s.b(2));
  OrderEvaluator evaluator(s.g.graph);
  for (int call = 0; call < 2; ++call) {
    CHECK(evaluator.evaluate(plain).makespan == ns(90));
    CHECK(evaluator.evaluate(s.schedule).makespan == ns(100));
  }
  s.schedule.offloads.clear();
  CHECK(test::error_of([&] { static_cast<void>(evaluator.time(s.schedule)); }).kind() ==
        ErrorKind::Input);
}

}  // namespace
}  // namespace dipsim
