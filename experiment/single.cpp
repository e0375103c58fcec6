// SPDX-License-Identifier: Apache-2.0
#include "experiment/single.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/bound.hpp"

#include <algorithm>

namespace dipsim {

PlacedSchedule::PlacedSchedule(const ScheduleChoice& choice, const Lowering& lowering,
                               const Batch& representative)
    : choice_(choice),
      lowering_(lowering),
      planner_(choice.info->make(choice.options)),
      placement_(planner_->place(lowering, representative)) {}

PlanRun PlacedSchedule::plan(const Batch& batch, RecomputeMode mode) const {
  PlanRun run;
  run.graph = lowering_.lower(planner_->slice(placement_, batch, lowering_), batch);
  run.schedule = planner_->order(run.graph);
  if (!choice_.info->chooses_memory) {
    run.schedule.chosen = uniform_strategies(run.graph, mode);
  }
  return run;
}

std::vector<RecomputeMode> PlacedSchedule::modes() const {
  if (choice_.recompute) {
    return {*choice_.recompute};
  }
  if (choice_.info->chooses_memory) {
    return {RecomputeMode::Mixed};
  }
  return {RecomputeMode::Keep, RecomputeMode::Selective, RecomputeMode::Full};
}

IterationResult measure(const PlanRun& run, const EngineOptions& options) {
  const TimelineAnalysis analysis = analyze(run.graph, run.schedule, run.timeline);
  IterationResult result{.makespan = run.timeline.makespan,
                         .iteration = run.timeline.iteration,
                         .lower_bound = lower_bound(run.graph).makespan,
                         .idle = {},
                         .bubble_ratio = analysis.bubble_ratio,
                         .bubble_overhead = analysis.bubble_overhead,
                         .mfu = analysis.mfu,
                         .peak_memory = {},
                         .fits = true};
  for (std::size_t cell = 0; cell < analysis.busy.size(); ++cell) {
    result.busy += analysis.busy[cell];
    result.idle += analysis.idle[cell];
  }
  for (std::size_t r = 0; r < run.timeline.memory.size(); ++r) {
    const Bytes peak = run.timeline.memory[r].peak;
    result.peak_memory.push_back(peak);
    result.fits = result.fits && peak <= run.graph.placement.ranks[r].memory_limit;
  }
  if (options.jitter > 0.0) {
    result.lower_bound = Duration{0};  // it holds for the nominal times only
  }
  DIPSIM_CHECK(result.makespan >= result.lower_bound, "a timeline beats its lower bound");
  return result;
}

}  // namespace dipsim
