// SPDX-License-Identifier: Apache-2.0
// Every rule that a task graph must keep, broken once. Plan files come from users: what validate()
// lets through must be safe to evaluate.
#include "sim/graph/task_graph.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;

constexpr std::int64_t kHuge = 5'000'000'000'000'000'000;

/// A graph with one of everything.
struct Everything {
  GraphBuilder g{2};
  PairId a = g.add_pair(RankId(0), Passes::Fused, fused(1, 2));
  PairId b = g.add_pair(RankId(1), Passes::Split, test::split(1, 2, 3));
  PairId c = g.add_pair(RankId(0), Passes::Fused, fused(1, 2));
  TaskId transfer;
  GroupId group = g.add_group({RankId(0), RankId(1)});
  TaskId reduce = g.add_task(Op::Collective, Lane::Gradient, RankId(0), ns(5), group);

  Everything() {
    g.add_pair_edges(a);
    g.add_pair_edges(b);
    g.add_pair_edges(c);
    g.add_offload(a);
    g.add_edge(g.b(a), reduce);
    transfer = g.add_transfer(g.f(a), g.f(b), ns(3), ns(1));
    g.graph.overlaps.push_back({g.f(c), g.b(a), ns(2)});
  }

  Task& task(TaskId id) { return g.graph.tasks[id.row()]; }

  Pair& pair(PairId id) { return g.graph.pairs[id.row()]; }

  Rank& rank() { return g.graph.placement.ranks[1]; }

  Chunk& chunk() { return g.graph.placement.chunks[1]; }

  Strategy& strategy() { return g.graph.strategies[1]; }
};

using Break = std::function<void(Everything&)>;

Error error_after(const Break& break_rule) {
  Everything one;
  break_rule(one);
  return test::error_of([&] { validate(one.g.graph); });
}

struct Rule {
  std::string place;
  Break broken;
};

void check_rules(const std::vector<Rule>& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    CAPTURE(i);
    CAPTURE(rules[i].place);
    Error error(ErrorKind::Internal, "", "");
    CHECK_NOTHROW(error = error_after(rules[i].broken));  // throws when the rule isn't checked
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where().find(rules[i].place) != std::string::npos);
    CHECK_FALSE(error.message().empty());
  }
}

TEST_CASE("a graph with one of everything is valid") {
  const Everything one;
  CHECK_NOTHROW(validate(one.g.graph));
  CHECK_NOTHROW(validate(GraphBuilder(3).graph));
  CHECK_NOTHROW(validate(TaskGraph{}));
}

TEST_CASE("broken ranks, chunks, groups and works are input errors at their row") {
  check_rules({
      {"/ranks/1", [](Everything& e) { e.rank().cells.clear(); }},
      {"/ranks/1", [](Everything& e) { e.rank().cells = {CellId(2)}; }},
      {"/ranks/1", [](Everything& e) { e.rank().cells = {CellId{}}; }},
      {"/ranks/1", [](Everything& e) { e.rank().cells = {CellId(1), CellId(0), CellId(1)}; }},
      {"/ranks/1", [](Everything& e) { e.rank().speed = 0.0; }},
      {"/ranks/1", [](Everything& e) { e.rank().speed = -1.0; }},
      {"/ranks/1", [](Everything& e) { e.rank().speed = std::nan(""); }},
      {"/ranks/1", [](Everything& e) { e.rank().speed = HUGE_VAL; }},
      {"/ranks/1", [](Everything& e) { e.rank().replica = -1; }},
      {"/ranks/1", [](Everything& e) { e.rank().position = -1; }},
      {"/ranks/1", [](Everything& e) { e.rank().tp = 0; }},
      {"/ranks/1", [](Everything& e) { e.rank().cp = -2; }},
      {"/ranks/1", [](Everything& e) { e.rank().memory_limit = Bytes{-1}; }},
      {"/ranks/1", [](Everything& e) { e.rank().reserved = Bytes{-1}; }},
      {"/chunks/1", [](Everything& e) { e.chunk().rank = RankId(2); }},
      {"/chunks/1", [](Everything& e) { e.chunk().rank = RankId{}; }},
      {"/chunks/1", [](Everything& e) { e.chunk().layers[0].module = ModuleId(1); }},
      {"/chunks/1", [](Everything& e) { e.chunk().layers[0].first = -1; }},
      {"/chunks/1", [](Everything& e) { e.chunk().layers[0].count = -1; }},
      {"/chunks/1", [](Everything& e) { e.chunk().weights = Bytes{-1}; }},
      {"/chunks/1", [](Everything& e) { e.chunk().gradients = Bytes{-1}; }},
      {"/chunks/1", [](Everything& e) { e.chunk().optimizer = Bytes{-1}; }},
      {"/groups/1", [](Everything& e) { e.g.add_group({RankId(0), RankId(2)}); }},
      {"/groups/1", [](Everything& e) { e.g.add_group({RankId{}}); }},
      {"/works/0", [](Everything& e) { e.g.graph.works[0].module = ModuleId(1); }},
      {"/works/0", [](Everything& e) { e.g.graph.works[0].portions[0].microbatch = {}; }},
      {"/works/0", [](Everything& e) { e.g.graph.works[0].portions[0].first = -1; }},
      {"/works/0", [](Everything& e) { e.g.graph.works[0].portions[0].count = -1; }},
  });
}

TEST_CASE("broken tasks are input errors at their row") {
  check_rules({
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).op = static_cast<Op>(12); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).lane = static_cast<Lane>(5); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).lane = Lane::Comm; }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).rank = RankId(2); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).rank = RankId{}; }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).chunk = ChunkId(2); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).work = WorkId(1); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).pair = PairId{}; }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).pair = PairId(3); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).fixed = ns(-1); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).latency = ns(-1); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).fillable_idle = ns(-1); }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).bytes = Bytes{-1}; }},
      {"/tasks/0", [](Everything& e) { e.task(TaskId(0)).transient = Bytes{-1}; }},
      {"/tasks/", [](Everything& e) { e.task(e.reduce).group = GroupId(1); }},
      {"/tasks/", [](Everything& e) { e.task(e.transfer).peer = RankId{}; }},
      {"/tasks/", [](Everything& e) { e.task(e.transfer).peer = RankId(2); }},
      {"/tasks/", [](Everything& e) { e.task(e.transfer).peer = RankId(0); }},
      // A second F and a second CopyOut of a pair that the pair does not name.
      {"/tasks/",
       [](Everything& e) {
         const Task twin = e.task(TaskId(0));
         e.g.graph.tasks.push_back(twin);
       }},
      {"/tasks/",
       [](Everything& e) {
         const Task twin = e.task(e.pair(e.a).copy_out);
         e.g.graph.tasks.push_back(twin);
       }},
      {"/tasks/",
       [](Everything& e) { e.g.add_task(Op::CopyIn, Lane::HostToDevice, RankId(0), ns(1)); }},
  });
}

TEST_CASE("broken pairs and strategies are input errors at their row") {
  check_rules({
      {"/pairs/0", [](Everything& e) { e.pair(e.a).f = TaskId{}; }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).f = TaskId(99); }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).f = e.g.b(e.a); }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).f = e.g.f(e.b); }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).b = TaskId(99); }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).b = e.g.f(e.a); }},
      {"/pairs/1", [](Everything& e) { e.pair(e.b).i = e.g.w(e.b); }},
      {"/pairs/1", [](Everything& e) { e.pair(e.b).w = e.g.i(e.b); }},
      {"/pairs/1",
       [](Everything& e) {  // b beside i and w
         Task fused_pass = e.task(e.g.i(e.b));
         fused_pass.op = Op::B;
         e.g.graph.tasks.push_back(fused_pass);
         e.pair(e.b).b = TaskId(e.g.graph.tasks.size() - 1);
       }},
      {"/pairs/0", [](Everything& e) { e.task(e.g.b(e.a)).rank = RankId(1); }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).copy_out = TaskId(99); }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).copy_in = TaskId{}; }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).copy_in = e.pair(e.a).copy_out; }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).strategy_count = 0; }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).strategy_count = 4; }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).first_strategy = StrategyId{}; }},
      {"/pairs/0", [](Everything& e) { e.pair(e.a).first_strategy = StrategyId(3); }},
      {"/strategies/1", [](Everything& e) { e.strategy().f = ns(-1); }},
      {"/strategies/1", [](Everything& e) { e.strategy().i = ns(-1); }},
      {"/strategies/1", [](Everything& e) { e.strategy().w = ns(-1); }},
      {"/strategies/1", [](Everything& e) { e.strategy().b = ns(-1); }},
      {"/strategies/1", [](Everything& e) { e.strategy().copy = ns(-1); }},
      {"/strategies/1", [](Everything& e) { e.strategy().f_to_i = Bytes{-1}; }},
      {"/strategies/1", [](Everything& e) { e.strategy().i_to_w = Bytes{-1}; }},
      {"/strategies/1", [](Everything& e) { e.strategy().rebuilt = Bytes{-1}; }},
      {"/strategies/1", [](Everything& e) { e.strategy().offload = Bytes{-1}; }},
      // More away than there is would make memory negative.
      {"/strategies/1",
       [](Everything& e) {
         e.strategy().f_to_i = Bytes{5};
         e.strategy().offload = Bytes{6};
       }},
  });
}

TEST_CASE("broken edges and overlaps are input errors at their row") {
  check_rules({
      {"/edges/0", [](Everything& e) { e.g.graph.edges[0].from = TaskId(99); }},
      {"/edges/0", [](Everything& e) { e.g.graph.edges[0].to = TaskId{}; }},
      {"/edges/0", [](Everything& e) { e.g.graph.edges[0].from = e.g.graph.edges[0].to; }},
      {"", [](Everything& e) { e.g.add_edge(e.g.f(e.c), e.transfer); }},  // a second sender
      {"",
       [](Everything& e) {  // a sender on another rank
         e.g.graph.edges.erase(e.g.graph.edges.end() - 2);
         e.g.add_edge(e.g.f(e.b), e.transfer);
       }},
      {"", [](Everything& e) { e.g.graph.edges.erase(e.g.graph.edges.end() - 2); }},  // none
      // Data appear where they were sent, nowhere else.
      {"/edges/", [](Everything& e) { e.g.add_edge(e.transfer, e.g.f(e.c)); }},
      {"/overlaps/0", [](Everything& e) { e.g.graph.overlaps[0].f = TaskId(99); }},
      {"/overlaps/0", [](Everything& e) { e.g.graph.overlaps[0].b = TaskId{}; }},
      {"/overlaps/0", [](Everything& e) { e.g.graph.overlaps[0].b = e.transfer; }},
      {"/overlaps/0", [](Everything& e) { e.g.graph.overlaps[0].b = e.g.f(e.c); }},
      {"/overlaps/0", [](Everything& e) { e.g.graph.overlaps[0].b = e.g.i(e.b); }},  // other rank
      {"/overlaps/0", [](Everything& e) { e.g.graph.overlaps[0].together = ns(-1); }},
  });
}

TEST_CASE("sums of times and sizes that 64 bits do not hold are input errors") {
  check_rules({
      {"", [](Everything& e) { e.strategy().f = e.strategy().i = ns(kHuge); }},
      {"",
       [](Everything& e) {
         e.task(TaskId(0)).fixed = ns(kHuge / 2);
         e.task(TaskId(1)).fixed = ns(kHuge / 2);
       }},
      {"", [](Everything& e) { e.task(e.transfer).latency = ns(kHuge); }},
      {"",
       [](Everything& e) {  // fits at speed 1
         e.rank().speed = 1e-9;
         e.task(e.g.f(e.b)).fixed = ns(1'000'000'000'000'000);
       }},
      {"", [](Everything& e) { e.g.graph.overlaps[0].together = ns(kHuge); }},
      {"", [](Everything& e) { e.strategy().f_to_i = e.strategy().rebuilt = Bytes{kHuge}; }},
      {"",
       [](Everything& e) {
         e.task(TaskId(0)).transient = Bytes{kHuge};
         e.task(TaskId(1)).transient = Bytes{kHuge};
       }},
      {"", [](Everything& e) { e.chunk().weights = e.chunk().optimizer = Bytes{kHuge}; }},
      {"",
       [](Everything& e) {  // neither alone is too much
         e.rank().reserved = Bytes{kHuge};
         e.chunk().weights = Bytes{kHuge / 10 * 9};
       }},
  });
}

}  // namespace
}  // namespace dipsim
