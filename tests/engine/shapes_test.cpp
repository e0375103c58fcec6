// SPDX-License-Identifier: Apache-2.0
// The core types carry every kind of pipeline: each graph below is written by hand, is valid, and
// runs to times derived by hand.
#include "sim/engine/engine.hpp"
#include "sim/graph/analysis.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/error_of.hpp"
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
using test::split;
using test::window;

constexpr RankId kRank0{0};
constexpr RankId kRank1{1};

std::string text(const MemoryCurve& curve) {
  std::string out;
  for (const MemoryPoint& point : curve.points) {
    out += (out.empty() ? "" : " ") + std::to_string((point.at - kStart).count()) + ":" +
           std::to_string(point.held.count);
  }
  return out;
}

/// Runs a valid graph and schedule.
Timeline run(const GraphBuilder& g, const Schedule& schedule) {
  validate(g.graph);
  Timeline timeline = simulate(g.graph, schedule);
  CHECK(timeline.makespan >= lower_bound(g.graph).makespan);
  return timeline;
}

void check_both_agree(const GraphBuilder& g, const Schedule& schedule, const Timeline& timeline) {
  CHECK(OrderEvaluator(g.graph).evaluate(schedule) == timeline);
}

// Chimera (Li and Hoefler 2021) on two ranks: microbatch 0 flows down (stage 0 on rank 0),
// microbatch 1 flows up (stage 0 on rank 1). Both ranks hold both stages: two copies of each weight
// set.
TEST_CASE("Chimera: two directions, copies of the weights, gradients reduced between the copies") {
  GraphBuilder g(2);
  Placement& place = g.graph.placement;
  place.chunks[0].weights = Bytes{100};
  place.chunks[1].weights = Bytes{100};
  Chunk up_first = place.chunks[0];  // stage 0 once more, on rank 1
  up_first.rank = kRank1;
  up_first.copy = 1;
  Chunk up_last = place.chunks[1];
  up_last.rank = kRank0;
  up_last.copy = 1;
  place.chunks.push_back(up_first);
  place.chunks.push_back(up_last);
  g.graph.works.push_back(g.graph.works[0]);
  g.graph.works[1].copy = 1;
  g.graph.works[1].portions[0].microbatch = MicrobatchId(1);

  const auto add = [&](RankId rank, std::int32_t chunk, std::int32_t work) {
    const PairId pair = g.add_pair(rank, Passes::Fused, fused(10, 20));
    for (const TaskId pass : {g.f(pair), g.b(pair)}) {
      g.graph.tasks[pass.row()].chunk = ChunkId(chunk);
      g.graph.tasks[pass.row()].work = WorkId(work);
    }
    g.add_pair_edges(pair);
    return pair;
  };
  const PairId down0 = add(kRank0, 0, 0);
  const PairId down1 = add(kRank1, 1, 0);
  const PairId up0 = add(kRank1, 2, 1);
  const PairId up1 = add(kRank0, 3, 1);
  for (const auto& [first, last] : {std::pair(down0, down1), std::pair(up0, up1)}) {
    g.add_transfer(g.f(first), g.f(last), ns(3));
    g.add_transfer(g.b(last), g.b(first), ns(3));
  }
  const GroupId both = g.add_group({kRank0, kRank1});
  std::vector<TaskId> steps;
  for (const RankId rank : {kRank0, kRank1}) {
    steps.push_back(g.add_task(Op::Optimizer, Lane::Compute, rank, ns(2)));
  }
  std::vector<TaskId> reductions;
  for (const auto& [a, b] : {std::pair(down0, up0), std::pair(down1, up1)}) {
    const TaskId reduce = g.add_task(Op::Collective, Lane::Gradient, kRank0, ns(9), both);
    g.add_edge(g.b(a), reduce);
    g.add_edge(g.b(b), reduce);
    for (const TaskId step : steps) {
      g.add_edge(reduce, step);
    }
    reductions.push_back(reduce);
  }
  const Schedule schedule = g.schedule(
      {{g.f(down0), g.f(up1), g.b(up1), g.b(down0)}, {g.f(up0), g.f(down1), g.b(down1), g.b(up0)}});
  const Timeline t = run(g, schedule);
  CHECK(window(t.spans[g.f(down0).row()]) == "0..10");
  CHECK(window(t.spans[g.f(up1).row()]) == "13..23");
  CHECK(window(t.spans[g.b(up1).row()]) == "23..43");
  CHECK(window(t.spans[g.b(down0).row()]) == "46..66");
  CHECK(window(t.spans[g.b(up0).row()]) == "46..66");
  CHECK(window(t.spans[reductions[0].row()]) == "66..75");  // both ready at 66 and 43
  CHECK(window(t.spans[reductions[1].row()]) == "43..52");
  CHECK(window(t.spans[steps[1].row()]) == "75..77");
  CHECK(t.makespan == ns(66));
  CHECK(t.iteration == ns(77));
  CHECK(t.memory[0].fixed == Bytes{200});
  check_both_agree(g, schedule, t);
}

// Encoders on ranks of one GPU each; the projector (tp 2) shares their GPUs; the backbone (tp 2)
// has two GPUs of its own.
TEST_CASE("a disaggregated encoder: ranks of different tp, and ranks that share cells") {
  GraphBuilder g(0);
  const RankId enc0 = g.add_rank({CellId(0)});
  const RankId enc1 = g.add_rank({CellId(1)});
  const RankId llm = g.add_rank({CellId(2), CellId(3)});
  const RankId proj = g.add_rank({CellId(0), CellId(1)});
  g.graph.placement.ranks[llm.row()].tp = 2;
  g.graph.placement.ranks[proj.row()].tp = 2;
  const PairId e0 = g.add_pair(enc0, Passes::Fused, fused(4, 8));
  const PairId e1 = g.add_pair(enc1, Passes::Fused, fused(6, 12));
  const PairId p = g.add_pair(proj, Passes::Fused, fused(3, 6));
  const PairId l = g.add_pair(llm, Passes::Fused, fused(5, 10));
  for (const PairId pair : {e0, e1, p, l}) {
    g.add_pair_edges(pair);
  }
  const TaskId from_e0 = g.add_transfer(g.f(e0), g.f(l), ns(2), ns(1));
  const TaskId from_e1 = g.add_transfer(g.f(e1), g.f(l), ns(2), ns(1));
  const TaskId from_p = g.add_transfer(g.f(p), g.f(l), ns(1));
  g.add_transfer(g.b(l), g.b(e0), ns(2), ns(1));
  g.add_transfer(g.b(l), g.b(e1), ns(2), ns(1));
  g.add_transfer(g.b(l), g.b(p), ns(1));
  const Schedule schedule = g.schedule({{g.f(e0), g.f(p), g.b(p), g.b(e0)},
                                        {g.f(e1), g.f(p), g.b(p), g.b(e1)},
                                        {g.f(l), g.b(l)},
                                        {g.f(l), g.b(l)}});
  const Timeline t = run(g, schedule);
  CHECK(window(t.spans[from_e0.row()]) == "4..7");
  CHECK(window(t.spans[from_e1.row()]) == "6..9");
  CHECK(window(t.spans[g.f(p).row()]) == "6..9");  // needs cell 1
  CHECK(window(t.spans[from_p.row()]) == "9..10");
  CHECK(window(t.spans[g.f(l).row()]) == "10..15");
  CHECK(window(t.spans[g.b(l).row()]) == "15..25");
  CHECK(window(t.spans[g.b(p).row()]) == "26..32");
  CHECK(window(t.spans[g.b(e0).row()]) == "32..40");
  CHECK(window(t.spans[g.b(e1).row()]) == "32..44");
  CHECK(t.makespan == ns(44));
  const TimelineAnalysis analysis = analyze(g.graph, schedule, t);
  CHECK(analysis.busy[0] == ns(4 + 3 + 6 + 8));
  CHECK(analysis.busy[3] == ns(15));
  CHECK(analysis.idle[2].transfer == ns(1));  // computed at 9, arrived at 10
  check_both_agree(g, schedule, t);
}

// ZB-V (Qi et al. 2024): stages 0 and 3 on rank 0, 1 and 2 on rank 1; backward as I and W.
TEST_CASE("ZB-V: the pipeline turns round on the last rank, backward is split") {
  GraphBuilder g(2);
  Strategy cost = split(10, 10, 10);
  cost.f_to_i = Bytes{4};
  cost.i_to_w = Bytes{2};
  std::vector<PairId> stage;
  for (const RankId rank : {kRank0, kRank1, kRank1, kRank0}) {
    stage.push_back(g.add_pair(rank, Passes::Split, cost));
    g.add_pair_edges(stage.back());
  }
  g.add_transfer(g.f(stage[0]), g.f(stage[1]), ns(1));
  g.add_edge(g.f(stage[1]), g.f(stage[2]));
  g.add_transfer(g.f(stage[2]), g.f(stage[3]), ns(1));
  g.add_transfer(g.i(stage[3]), g.i(stage[2]), ns(1));
  g.add_edge(g.i(stage[2]), g.i(stage[1]));
  g.add_transfer(g.i(stage[1]), g.i(stage[0]), ns(1));
  const Schedule schedule = g.schedule(
      {{g.f(stage[0]), g.f(stage[3]), g.i(stage[3]), g.w(stage[3]), g.i(stage[0]), g.w(stage[0])},
       {g.f(stage[1]), g.f(stage[2]), g.i(stage[2]), g.i(stage[1]), g.w(stage[2]), g.w(stage[1])}});
  const Timeline t = run(g, schedule);
  CHECK(window(t.spans[g.f(stage[1]).row()]) == "11..21");
  CHECK(window(t.spans[g.f(stage[2]).row()]) == "21..31");
  CHECK(window(t.spans[g.f(stage[3]).row()]) == "32..42");
  CHECK(window(t.spans[g.i(stage[3]).row()]) == "42..52");
  CHECK(window(t.spans[g.w(stage[3]).row()]) == "52..62");
  CHECK(window(t.spans[g.i(stage[2]).row()]) == "53..63");
  CHECK(window(t.spans[g.i(stage[1]).row()]) == "63..73");
  CHECK(window(t.spans[g.w(stage[1]).row()]) == "83..93");
  CHECK(window(t.spans[g.i(stage[0]).row()]) == "74..84");
  CHECK(window(t.spans[g.w(stage[0]).row()]) == "84..94");
  CHECK(t.makespan == ns(94));
  CHECK(text(t.memory[0]) == "0:4 32:8 52:6 62:4 84:2 94:0");
  CHECK(text(t.memory[1]) == "0:0 11:4 21:8 63:6 73:4 83:2 93:0");
  check_both_agree(g, schedule, t);
}

// Two data-parallel ranks with two layers each, whose parameters are gathered before use and whose
// gradients are scattered; rank 1 computes at half speed.
TEST_CASE("FSDP: parameters gathered before a pass, gradients scattered after it") {
  GraphBuilder g(0);
  g.add_rank({CellId(0)});
  g.add_rank({CellId(1)}, 0.5);
  g.graph.placement.ranks[1].replica = 1;
  const GroupId both = g.add_group({kRank0, kRank1});
  std::vector<std::vector<PairId>> layer(2);
  for (int l = 0; l < 2; ++l) {
    for (const RankId rank : {kRank0, kRank1}) {
      const PairId pair = g.add_pair(rank, Passes::Fused, fused(2, 4));
      g.add_pair_edges(pair);
      layer[static_cast<std::size_t>(l)].push_back(pair);
    }
  }
  const auto collective = [&](Op op, Lane lane, const std::vector<TaskId>& before,
                              const std::vector<TaskId>& after) {
    const TaskId task = g.add_task(op, lane, kRank0, ns(3), both);
    for (const TaskId each : before) {
      g.add_edge(each, task);
    }
    for (const TaskId each : after) {
      g.add_edge(task, each);
    }
    return task;
  };
  const auto fs = [&](std::size_t l) { return std::vector{g.f(layer[l][0]), g.f(layer[l][1])}; };
  const auto bs = [&](std::size_t l) { return std::vector{g.b(layer[l][0]), g.b(layer[l][1])}; };
  const TaskId gather0 = collective(Op::Gather, Lane::Comm, {}, fs(0));
  const TaskId gather1 = collective(Op::Gather, Lane::Comm, {}, fs(1));
  const TaskId again0 = collective(Op::Gather, Lane::Comm, fs(1), bs(0));
  const TaskId scatter1 = collective(Op::Scatter, Lane::Gradient, bs(1), {});
  const TaskId scatter0 = collective(Op::Scatter, Lane::Gradient, bs(0), {});
  g.graph.tasks[gather0.row()].transient = Bytes{50};
  std::vector<TaskId> steps;
  for (const RankId rank : {kRank0, kRank1}) {
    steps.push_back(g.add_task(Op::Optimizer, Lane::Compute, rank, ns(1)));
    g.add_edge(scatter0, steps.back());
    g.add_edge(scatter1, steps.back());
  }
  std::vector<std::vector<TaskId>> orders(2);
  for (std::size_t r = 0; r < 2; ++r) {
    orders[r] = {fs(0)[r], fs(1)[r], bs(1)[r], bs(0)[r]};
    g.add_edge(fs(0)[r], fs(1)[r]);
    g.add_edge(bs(1)[r], bs(0)[r]);
  }
  const Schedule schedule = g.schedule(orders);
  const Timeline t = run(g, schedule);
  CHECK(window(t.spans[gather0.row()]) == "0..3");
  CHECK(window(t.spans[gather1.row()]) == "3..6");
  CHECK(window(t.spans[fs(0)[0].row()]) == "3..5");
  CHECK(window(t.spans[fs(0)[1].row()]) == "3..7");
  CHECK(window(t.spans[fs(1)[0].row()]) == "6..8");
  CHECK(window(t.spans[fs(1)[1].row()]) == "7..11");
  CHECK(window(t.spans[bs(1)[0].row()]) == "8..12");
  CHECK(window(t.spans[bs(1)[1].row()]) == "11..19");
  CHECK(window(t.spans[again0.row()]) == "11..14");
  CHECK(window(t.spans[bs(0)[0].row()]) == "14..18");
  CHECK(window(t.spans[bs(0)[1].row()]) == "19..27");
  CHECK(window(t.spans[scatter1.row()]) == "19..22");
  CHECK(window(t.spans[scatter0.row()]) == "27..30");
  CHECK(window(t.spans[steps[0].row()]) == "30..31");
  CHECK(window(t.spans[steps[1].row()]) == "30..32");
  CHECK(t.makespan == ns(24));   // from the first pass at 3 to 27
  CHECK(t.iteration == ns(32));  // from the first gather at 0 to the last step at 32
  CHECK(text(t.memory[0]) == "0:50 3:0");
  const TimelineAnalysis analysis = analyze(g.graph, schedule, t);
  CHECK(analysis.idle[0].collective == ns(1 + 2));
  CHECK(analysis.idle[0].straggler == ns(9));
  CHECK(analysis.idle[0].total() == ns(12));
  CHECK(analysis.idle[1].total() == ns(0));
  CHECK(test::error_of([&] { const OrderEvaluator refused(g.graph); }).kind() == ErrorKind::Input);
}

// Two pairs on one rank; the activations of the first are away while the second is computed.
TEST_CASE("offload: activations copied out and back while another pair is computed") {
  GraphBuilder g(1);
  Strategy keep = fused(10, 20);
  keep.f_to_i = Bytes{10};
  Strategy offload = keep;
  offload.mode = RecomputeMode::Offload;
  offload.copy = ns(6);
  offload.offload = Bytes{8};
  const PairId a = g.add_pair(kRank0, Passes::Fused, {keep, offload});
  const PairId b = g.add_pair(kRank0, Passes::Fused, {keep, offload});
  for (const PairId pair : {a, b}) {
    g.add_pair_edges(pair);
    g.add_offload(pair);
  }
  const TaskId out = g.graph.pair(a).copy_out;
  const TaskId in = g.graph.pair(a).copy_in;
  Schedule schedule = g.schedule({{g.f(a), g.f(b), g.b(b), g.b(a)}});
  schedule.chosen[a.row()] = StrategyId(1);
  schedule.offloads = {{a, g.b(b), g.b(b)}};  // away during the second backward
  const Timeline t = run(g, schedule);
  CHECK(window(t.spans[g.f(a).row()]) == "0..10");
  CHECK(window(t.spans[g.f(b).row()]) == "10..20");
  CHECK(window(t.spans[out.row()]) == "10..16");
  CHECK(window(t.spans[in.row()]) == "40..46");
  CHECK(window(t.spans[g.b(b).row()]) == "20..40");
  CHECK(window(t.spans[g.b(a).row()]) == "46..66");  // the copy in delays it
  // The copies of a pair that keeps its activations take no time.
  CHECK(window(t.spans[g.graph.pair(b).copy_out.row()]) == "20..20");
  CHECK(window(t.spans[g.graph.pair(b).copy_in.row()]) == "20..20");
  CHECK(text(t.memory[0]) == "0:10 10:20 16:12 40:10 66:0");
  CHECK(OrderEvaluator(g.graph).evaluate(schedule) == t);

  schedule.chosen[a.row()] = StrategyId(0);
  schedule.offloads.clear();
  CHECK(text(run(g, schedule).memory[0]) == "0:10 10:20 40:10 60:0");
}

}  // namespace
}  // namespace dipsim
