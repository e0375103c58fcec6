// SPDX-License-Identifier: Apache-2.0
// Plans by name and their times, for the tests of the schedules with a fixed order.
#pragma once

#include "models/synthetic.hpp"
#include "schedulers/registry.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/memory.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/planner.hpp"
#include "sim/graph/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim::test {

struct StaticPlan {
  TaskGraph graph;
  Schedule schedule;
};

/// All three steps of a planner; checks that what it gives is valid.
inline StaticPlan plan(std::string_view name, const Lowering& lowering, const Batch& batch,
                       const PlannerOptions& options = {}) {
  const std::unique_ptr<Planner> planner = find_schedule(name).make(options);
  const Placement placement = planner->place(lowering, batch);
  StaticPlan made{lowering.lower(planner->slice(placement, batch, lowering), batch), {}};
  validate(made.graph);
  made.schedule = planner->order(made.graph);
  validate(made.graph, made.schedule);
  return made;
}

inline StaticPlan plan(std::string_view name, const SyntheticSpec& spec) {
  PlannerOptions options;
  options.chunks_per_rank = spec.chunks;
  return plan(name, *make_synthetic(spec), synthetic_batch(spec), options);
}

/// p ranks, m microbatches, v chunks per rank and these times for every stage, in nanoseconds.
inline SyntheticSpec pipeline(int p, int m, int v, int f, int i, int w) {
  SyntheticSpec spec;
  spec.ranks = p;
  spec.microbatches = m;
  spec.chunks = v;
  spec.forward = {Duration{f}};
  spec.backward_input = {Duration{i}};
  spec.backward_weight = {Duration{w}};
  return spec;
}

/// Of the order evaluator, which the engine must confirm.
inline Timeline timeline(const StaticPlan& made) {
  const Timeline fast = OrderEvaluator(made.graph).evaluate(made.schedule);
  const Timeline full = simulate(made.graph, made.schedule);
  if (!(fast == full)) {
    throw std::logic_error("order evaluator and engine disagree");
  }
  return fast;
}

inline std::int64_t makespan(const StaticPlan& made) { return timeline(made).makespan.count(); }

inline std::int64_t rendezvous_makespan(const StaticPlan& made) {
  EngineOptions options;
  options.send = SendMode::Rendezvous;
  return simulate(made.graph, made.schedule, options).makespan.count();
}

inline std::vector<int> in_flight(const StaticPlan& made) {
  return peak_in_flight(made.graph, timeline(made).spans);
}

/// The order of each cell, one line each, in PyTorch's notation: stage, pass, microbatch.
inline std::string order_text(const StaticPlan& made) {
  std::string text;
  for (std::size_t cell = 0; cell < made.schedule.compute.size(); ++cell) {
    for (const Slot& slot : made.schedule.compute[cell]) {
      const Task& task = made.graph.task(slot.task);
      const Work& work = made.graph.works[task.work.row()];
      text += std::to_string(task.chunk.value) + std::string(name_of(task.op)) +
              std::to_string(work.portions.front().microbatch.value) + " ";
    }
    text.back() = '\n';
  }
  return text;
}

}  // namespace dipsim::test
