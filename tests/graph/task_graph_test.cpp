// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/task_graph.hpp"

#include "sim/graph/adjacency.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;

TEST_CASE("ops, modes and their order are what files and messages call them") {
  CHECK(name_of(Op::F) == "F");
  CHECK(name_of(Op::I) == "I");
  CHECK(name_of(Op::W) == "W");
  CHECK(name_of(Op::B) == "B");
  CHECK(name_of(Op::Transfer) == "transfer");
  CHECK(name_of(Op::Gather) == "gather");
  CHECK(name_of(Op::CopyIn) == "copy-in");
  CHECK(name_of(Op::Optimizer) == "optimizer");
  CHECK(name_of(RecomputeMode::Keep) == "keep");
  CHECK(name_of(RecomputeMode::Mixed) == "mixed");
  CHECK(static_cast<std::size_t>(Op::Optimizer) + 1 == kOpCount);
  CHECK(static_cast<std::size_t>(Lane::HostToDevice) + 1 == kLaneCount);
}

TEST_CASE("passes are F, I, W and B, and nothing else") {
  std::string passes;
  for (std::size_t op = 0; op < kOpCount; ++op) {
    if (is_pass(static_cast<Op>(op))) {
      passes += name_of(static_cast<Op>(op));
    }
  }
  CHECK(passes == "FIWB");
}

TEST_CASE("a pass takes its fixed time and that of the chosen strategy, at the speed of its rank") {
  GraphBuilder g(1);
  const RankId slow = g.add_rank({CellId(1)}, 0.5);
  Strategy other = test::split(11, 12, 13);
  other.b = ns(14);
  other.copy = ns(15);
  const PairId a = g.add_pair(RankId(0), Passes::Split, {test::split(1, 2, 3), other});
  const PairId b = g.add_pair(slow, Passes::Fused, {fused(1, 2), other});
  g.add_offload(b);
  g.graph.tasks[g.w(a).row()].fixed = ns(100);
  const std::vector<StrategyId> first = {StrategyId(0), StrategyId(2)};
  const std::vector<StrategyId> second = {StrategyId(1), StrategyId(3)};
  CHECK(duration_of(g.graph, g.f(a), first) == ns(1));
  CHECK(duration_of(g.graph, g.i(a), first) == ns(2));
  CHECK(duration_of(g.graph, g.w(a), first) == ns(103));
  CHECK(duration_of(g.graph, g.f(a), second) == ns(11));
  CHECK(duration_of(g.graph, g.i(a), second) == ns(12));
  CHECK(duration_of(g.graph, g.w(a), second) == ns(113));
  CHECK(duration_of(g.graph, g.f(b), first) == ns(2));
  CHECK(duration_of(g.graph, g.b(b), second) == ns(28));
  // A slow rank has no slow link to its host.
  CHECK(duration_of(g.graph, g.graph.pair(b).copy_out, first) == ns(0));
  CHECK(duration_of(g.graph, g.graph.pair(b).copy_in, second) == ns(15));
}

TEST_CASE("of a transfer the duration is the time on its link, at any speed of its rank") {
  GraphBuilder g(0);
  const RankId slow = g.add_rank({CellId(0)}, 0.25);
  g.add_rank({CellId(1)});
  const PairId a = g.add_pair(slow, Passes::ForwardOnly, fused(1, 0));
  const PairId b = g.add_pair(RankId(1), Passes::ForwardOnly, fused(1, 0));
  const TaskId transfer = g.add_transfer(g.f(a), g.f(b), ns(7), ns(100));
  CHECK(duration_of(g.graph, transfer, std::vector{StrategyId(0), StrategyId(1)}) == ns(7));
}

TEST_CASE("times at another speed are rounded to the nearest nanosecond, halves up") {
  GraphBuilder g(0);
  const auto at_speed_of = [&](double speed, std::int64_t nominal) {
    const RankId rank = g.add_rank({CellId(0)}, speed);
    const TaskId step = g.add_task(Op::Optimizer, Lane::Compute, rank, ns(nominal));
    return duration_of(g.graph, step, {}).count();
  };
  CHECK(at_speed_of(2.0, 5) == 3);
  CHECK(at_speed_of(2.0, 4) == 2);
  CHECK(at_speed_of(4.0, 5) == 1);
  CHECK(at_speed_of(0.5, 5) == 10);
  CHECK(at_speed_of(3.0, 10) == 3);
  CHECK(at_speed_of(1.0, 9'007'199'254'740'993) == 9'007'199'254'740'993);  // 2^53 + 1
}

TEST_CASE("before the first pass a rank holds its reserve and every weight set once") {
  GraphBuilder g(3);
  Placement& place = g.graph.placement;
  place.ranks[0].reserved = Bytes{1};
  place.ranks[2].reserved = Bytes{7};
  const auto size = [](Chunk& chunk, std::int64_t weights, std::int64_t gradients,
                       std::int64_t optimizer) {
    chunk.weights = Bytes{weights};
    chunk.gradients = Bytes{gradients};
    chunk.optimizer = Bytes{optimizer};
  };
  size(place.chunks[0], 10, 20, 30);
  size(place.chunks[1], 100, 200, 300);
  Chunk shared = place.chunks[0];  // the same parameters, used by a second chunk of rank 0
  place.chunks.push_back(shared);
  shared.rank = RankId(1);  // a copy on another rank is another allocation
  place.chunks.push_back(shared);
  Chunk more = place.chunks[0];
  more.weight_set = 77;
  place.chunks.push_back(more);
  CHECK(static_memory(place) == std::vector{Bytes{1 + 60 + 60}, Bytes{600 + 60}, Bytes{7}});
}

TEST_CASE("a description names op, chunk, module, microbatch and ranks") {
  GraphBuilder g(2);
  g.graph.module_names = {"vit"};
  const PairId a = g.add_pair(RankId(0), Passes::Fused, fused(1, 2));
  const PairId b = g.add_pair(RankId(1), Passes::Fused, fused(1, 2));
  const TaskId transfer = g.add_transfer(g.f(a), g.f(b), ns(7));
  const TaskId step = g.add_task(Op::Optimizer, Lane::Compute, RankId(1), ns(1));
  CHECK(describe(g.graph, g.f(b)) == "F of chunk 1 (vit) on microbatch 0 on rank 1");
  CHECK(describe(g.graph, transfer) == "transfer (vit) on microbatch 0 on rank 0 to rank 1");
  CHECK(describe(g.graph, step) == "optimizer on rank 1");
}

TEST_CASE("the allowed strategies of a pair are its own, in order") {
  GraphBuilder g(1);
  g.add_pair(RankId(0), Passes::Fused, {fused(1, 2), fused(3, 4)});
  const PairId b = g.add_pair(RankId(0), Passes::Fused, {fused(5, 6), fused(7, 8), fused(9, 10)});
  const auto allowed = g.graph.allowed(g.graph.pair(b));
  REQUIRE(allowed.size() == 3);
  CHECK(allowed[0].f == ns(5));
  CHECK(allowed[2].f == ns(9));
}

TEST_CASE("successors stand in the order of the edges, with the number of waits per task") {
  GraphBuilder g(1);
  std::vector<TaskId> t;
  for (int i = 0; i < 4; ++i) {
    t.push_back(g.f(g.add_pair(RankId(0), Passes::ForwardOnly, fused(1, 0))));
  }
  g.add_edge(t[0], t[3]);
  g.add_edge(t[2], t[3]);
  g.add_edge(t[0], t[1]);
  g.add_edge(t[0], t[3]);  // twice: two waits, both released
  const Successors successors(g.graph);
  const auto of_first = successors.of(t[0]);
  CHECK(std::vector(of_first.begin(), of_first.end()) == std::vector{t[3], t[1], t[3]});
  CHECK(successors.of(t[1]).empty());
  CHECK(successors.of(t[2]).size() == 1);
  const auto counts = successors.predecessor_counts();
  CHECK(std::vector(counts.begin(), counts.end()) == std::vector{0, 1, 0, 3});
}

}  // namespace
}  // namespace dipsim
