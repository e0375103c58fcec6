// SPDX-License-Identifier: Apache-2.0
// Pipelines in which every microbatch costs something else on every stage, at tight memory.
#pragma once

#include "schedulers/static/replicas.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/memory.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

namespace dipsim::test {

/// A graph and the planner that has placed it.
struct Unplanned {
  std::unique_ptr<Planner> planner;
  TaskGraph graph;
};

inline Unplanned unplanned(std::string_view name, const Lowering& lowering, const Batch& batch,
                           const PlannerOptions& options = {}) {
  Unplanned made{find_schedule(name).make(options), {}};
  const Placement placement = made.planner->place(lowering, batch);
  made.graph = lowering.lower(made.planner->slice(placement, batch, lowering), batch);
  return made;
}

/// Times (none zero) and sizes of its own for every pair, times of its own for every transfer.
inline void make_unequal(TaskGraph& graph, std::uint64_t seed) {
  RandomStream random(seed, "unequal graphs");
  const auto time = [&] { return Duration{random.integer(1, 100)}; };
  const auto size = [&] { return Bytes{random.integer(0, 50)}; };
  graph.strategies.clear();
  for (Pair& pair : graph.pairs) {
    pair.first_strategy = StrategyId{graph.strategies.size()};
    pair.strategy_count = 1;
    Strategy strategy{.f = time(), .i = time(), .w = time()};
    strategy.b = strategy.i + strategy.w;
    strategy.f_to_i = size();
    strategy.i_to_w = size();
    strategy.rebuilt = size();
    graph.strategies.push_back(strategy);
  }
  for (Task& task : graph.tasks) {
    if (task.op == Op::Transfer) {
      task.fixed = Duration{random.integer(0, 30)};
      task.latency = Duration{random.integer(0, 30)};
    } else if (is_pass(task.op)) {
      task.transient = Bytes{random.integer(0, 20)};
    }
  }
}

/// One microbatch after the other: its forwards in flow order, its backwards against it, each W
/// after its I. Needs the least memory of all orders that keep microbatches apart.
inline Schedule one_by_one(const TaskGraph& graph, RecomputeMode mode) {
  std::vector<std::vector<std::tuple<WorkId, int, TaskId>>> of_cell(graph.placement.cells.size());
  for (const Pair& pair : graph.pairs) {
    const Task& forward = graph.task(pair.f);
    auto& passes = of_cell[graph.rank(forward.rank).cells.front().row()];
    const int chunk = forward.chunk.value;
    passes.emplace_back(forward.work, chunk, pair.f);
    int place = 1'000'000 - 2 * chunk;
    for (const TaskId pass : {pair.b, pair.i, pair.w}) {
      if (pass.valid()) {
        passes.emplace_back(forward.work, place++, pass);
      }
    }
  }
  Schedule schedule;
  schedule.chosen = uniform_strategies(graph, mode);
  for (auto& passes : of_cell) {
    std::ranges::sort(passes);
    schedule.compute.add_row();
    for (const auto& [work, place, pass] : passes) {
      schedule.compute.push_back({.task = pass, .together = {}});
    }
  }
  return schedule;
}

/// Peaks of the ranks, recomputed from the spans of the order evaluator.
inline std::vector<Bytes> peaks(const TaskGraph& graph, const Schedule& schedule) {
  std::vector<Bytes> peaks;
  for (const MemoryCurve& curve : OrderEvaluator(graph).evaluate(schedule).memory) {
    peaks.push_back(curve.peak);
  }
  return peaks;
}

/// Sets the limit of every rank to `percent` of what one microbatch after the other needs.
inline void limit_memory(TaskGraph& graph, std::int64_t percent,
                         RecomputeMode mode = RecomputeMode::Keep) {
  const std::vector<Bytes> least = peaks(graph, one_by_one(graph, mode));
  for (std::size_t r = 0; r < least.size(); ++r) {
    graph.placement.ranks[r].memory_limit = Bytes{least[r].count * percent / 100};
  }
}

/// Stages round robin over the ranks.
inline std::vector<Replica> replicas_of(const TaskGraph& graph) {
  static constexpr StaticSchedule kAny{.name = "any", .max_chunks = 100, .rank_of = round_robin};
  return find_replicas(graph, kAny);
}

/// The first replica of a graph, everything kept.
inline PipelineInstance instance_of(const TaskGraph& graph) {
  return pipeline_instances(graph, replicas_of(graph),
                            uniform_strategies(graph, RecomputeMode::Keep))
      .front();
}

/// The steps of every rank of a graph with one replica.
inline Schedule schedule_of(const TaskGraph& graph, const std::vector<std::vector<Step>>& steps) {
  const Replica replica = replicas_of(graph).front();
  Schedule schedule;
  schedule.chosen = uniform_strategies(graph, RecomputeMode::Keep);
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    schedule.compute.add_row();
    for (const Step& step : steps[rank]) {
      const Pair& pair = graph.pair(replica.pair(static_cast<int>(rank), step));
      const TaskId pass = pass_of(pair, step.op);
      schedule.compute.push_back({.task = pass, .together = {}});
    }
  }
  return schedule;
}

}  // namespace dipsim::test
