// SPDX-License-Identifier: Apache-2.0
#include "tests/support/graph_builder.hpp"

#include <algorithm>
#include <array>

namespace dipsim::test {

GraphBuilder::GraphBuilder(std::size_t ranks) {
  graph.module_names = {"m"};
  Work work;
  work.module = ModuleId(0);
  work.portions.push_back({MicrobatchId(0), 0, 1});
  graph.works.push_back(work);
  for (std::size_t r = 0; r < ranks; ++r) {
    add_rank({CellId(r)});
  }
}

RankId GraphBuilder::add_rank(const std::vector<CellId>& cells, double speed) {
  Placement& place = graph.placement;
  for (const CellId cell : cells) {
    while (place.cells.size() <= cell.row()) {
      const std::array gpus = {GpuId(place.cells.size())};
      place.cells.add_row(gpus);
    }
  }
  const RankId id(place.ranks.size());
  Rank rank;
  rank.position = id.value;
  rank.cells = cells;
  rank.speed = speed;
  place.ranks.push_back(rank);
  Chunk chunk;
  chunk.layers.push_back({ModuleId(0), id.value, 1});
  chunk.rank = id;
  chunk.weight_set = id.value;
  place.chunks.push_back(chunk);
  return id;
}

GroupId GraphBuilder::add_group(const std::vector<RankId>& ranks) {
  graph.placement.groups.add_row(ranks);
  return GroupId(graph.placement.groups.size() - 1);
}

PairId GraphBuilder::add_pair(RankId rank, Passes passes, const std::vector<Strategy>& strategies) {
  const PairId id(graph.pairs.size());
  const auto add_pass = [&](Op op) {
    const TaskId pass = add_task(op, Lane::Compute, rank, Duration{0});
    graph.tasks[pass.row()].chunk = ChunkId(rank.value);
    graph.tasks[pass.row()].work = WorkId(0);
    graph.tasks[pass.row()].pair = id;
    return pass;
  };
  Pair pair;
  pair.f = add_pass(Op::F);
  if (passes == Passes::Fused) {
    pair.b = add_pass(Op::B);
  } else if (passes == Passes::Split) {
    pair.i = add_pass(Op::I);
    pair.w = add_pass(Op::W);
  }
  pair.first_strategy = StrategyId(graph.strategies.size());
  pair.strategy_count = static_cast<std::int32_t>(strategies.size());
  graph.strategies.insert(graph.strategies.end(), strategies.begin(), strategies.end());
  graph.pairs.push_back(pair);
  return id;
}

PairId GraphBuilder::add_pair(RankId rank, Passes passes, const Strategy& strategy) {
  return add_pair(rank, passes, std::vector{strategy});
}

TaskId GraphBuilder::add_task(Op op, Lane lane, RankId rank, Duration fixed, GroupId group) {
  Task task;
  task.op = op;
  task.lane = lane;
  task.rank = rank;
  task.fixed = fixed;
  task.group = group;
  graph.tasks.push_back(task);
  return TaskId(graph.tasks.size() - 1);
}

TaskId GraphBuilder::add_transfer(TaskId from, TaskId to, Duration fixed, Duration latency) {
  const TaskId transfer = add_task(Op::Transfer, Lane::Comm, graph.task(from).rank, fixed);
  graph.tasks[transfer.row()].peer = graph.task(to).rank;
  graph.tasks[transfer.row()].work = WorkId(0);
  graph.tasks[transfer.row()].latency = latency;
  add_edge(from, transfer);
  add_edge(transfer, to);
  return transfer;
}

void GraphBuilder::add_edge(TaskId from, TaskId to) { graph.edges.push_back({from, to}); }

void GraphBuilder::add_pair_edges(PairId pair) {
  TaskId before = f(pair);
  for (const TaskId next : {b(pair), i(pair), w(pair)}) {
    if (next.valid()) {
      add_edge(before, next);
      before = next;
    }
  }
}

void GraphBuilder::add_offload(PairId pair) {
  const auto add_copy = [&](Op op, Lane lane) {
    const TaskId copy = add_task(op, lane, graph.task(f(pair)).rank, Duration{0});
    graph.tasks[copy.row()].pair = pair;
    return copy;
  };
  const TaskId out = add_copy(Op::CopyOut, Lane::DeviceToHost);
  const TaskId in = add_copy(Op::CopyIn, Lane::HostToDevice);
  graph.pairs[pair.row()].copy_out = out;
  graph.pairs[pair.row()].copy_in = in;
  add_edge(f(pair), out);
  add_edge(out, in);
  add_edge(in, b(pair).valid() ? b(pair) : i(pair));
}

Schedule GraphBuilder::schedule(const std::vector<std::vector<TaskId>>& orders) const {
  Schedule schedule;
  for (const std::vector<TaskId>& order : orders) {
    schedule.compute.add_row();
    for (const TaskId task : order) {
      schedule.compute.push_back({.task = task, .together = {}});
    }
  }
  for (const Pair& pair : graph.pairs) {
    schedule.chosen.push_back(pair.first_strategy);
  }
  return schedule;
}

std::string window(const Span& span) {
  return std::to_string((span.start - kStart).count()) + ".." +
         std::to_string((span.end - kStart).count());
}

Strategy fused(std::int64_t f, std::int64_t b) {
  Strategy strategy;
  strategy.f = ns(f);
  strategy.b = ns(b);
  return strategy;
}

Strategy split(std::int64_t f, std::int64_t i, std::int64_t w) {
  Strategy strategy;
  strategy.f = ns(f);
  strategy.i = ns(i);
  strategy.w = ns(w);
  return strategy;
}

}  // namespace dipsim::test
