// SPDX-License-Identifier: Apache-2.0
#include "experiment/single.hpp"

#include "experiment/stragglers.hpp"
#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"
#include "sim/graph/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace dipsim {

namespace {

constexpr const char* kPlacedEachBatch =
    "anew on the very batch of every iteration: a hypothetical best case, since weights would have "
    "to move between iterations";

/// Nothing, or the error that says that a variant can't do this. Other errors pass.
template <class Body>
std::optional<Error> reason_against(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Input && error.kind() != ErrorKind::Infeasible) {
      throw;
    }
    return error;
  }
  return std::nullopt;
}

}  // namespace

PlacedSchedule::PlacedSchedule(const ScheduleChoice& choice, const Lowering& lowering,
                               const Batch& representative)
    : choice_(choice), lowering_(lowering) {
  for (Variant& variant : variants_of(choice, lowering.problem())) {
    Placed placed = place(variant, representative);
    if (!repeats(variant, placed)) {
      variants_.push_back(std::move(variant));
      placed_.push_back(std::move(placed));
    }
  }
  const std::optional<Error>& first = placed_.front().impossible;
  if (first &&
      std::ranges::all_of(placed_, [](const Placed& p) { return p.impossible.has_value(); })) {
    throw Error(*first);
  }
}

bool PlacedSchedule::repeats(const Variant& variant, const Placed& placed) const {
  if (placed.impossible || variant.options.place_each_batch ||
      variant.options.activation_percent == 0) {
    return false;
  }
  // How a partition counts activations shows in nothing but the placement.
  for (std::size_t row = 0; row < variants_.size(); ++row) {
    const PlannerOptions& earlier = variants_[row].options;
    if (earlier.recompute == variant.options.recompute &&
        earlier.chunks_per_rank == variant.options.chunks_per_rank &&
        placed_[row].placement.ranks == placed.placement.ranks &&
        placed_[row].placement.chunks == placed.placement.chunks) {
      return true;
    }
  }
  return false;
}

PlacedSchedule::Placed PlacedSchedule::place(const Variant& variant,
                                             const Batch& representative) const {
  Placed placed;
  placed.impossible = reason_against([&] {
    placed.planner = choice_.info->make(variant.options);
    placed.placement = placed.planner->place(lowering_, representative);
  });
  return placed;
}

std::optional<Placement> PlacedSchedule::own_placement(const Batch& batch,
                                                       std::size_t variant) const {
  if (!variants_[variant].options.place_each_batch) {
    return std::nullopt;
  }
  Placement own = placed_[variant].planner->place(lowering_, batch);
  own.notes.push_back({"placed", kPlacedEachBatch});
  return own;
}

TaskGraph PlacedSchedule::lower(const Batch& batch, std::size_t variant,
                                const std::optional<Placement>& own) const {
  const Placed& placed = placed_[variant];
  return lowering_.lower(placed.planner->slice(own ? *own : placed.placement, batch, lowering_),
                         batch);
}

PlanRun PlacedSchedule::plan(const Batch& batch, std::size_t variant) const {
  if (placed_[variant].impossible) {
    throw Error(*placed_[variant].impossible);
  }
  PlanRun run;
  run.graph = lower(batch, variant, own_placement(batch, variant));
  run.schedule = placed_[variant].planner->order(run.graph);
  return run;
}

PlanRun PlacedSchedule::restore(const Batch& batch, std::size_t variant, KeptPlan plan) const {
  return {.graph = lower(batch, variant, plan.placement),
          .schedule = std::move(plan.schedule),
          .timeline = {}};
}

std::vector<Outcome> PlacedSchedule::run(const Batch& batch, const Machine& machine,
                                         bool keep_plans) const {
  const PlanControl& control = choice_.options.control;
  std::vector<Outcome> outcomes(variants_.size());
  std::atomic<std::size_t> ended{0};
  parallel_for(
      variants_.size(), control.jobs,
      [&](std::size_t variant) {
        Outcome& outcome = outcomes[variant];
        std::optional<Placement> own;
        PlanRun run;
        outcome.impossible = placed_[variant].impossible;
        if (!outcome.impossible) {
          outcome.impossible = reason_against([&] {
            own = own_placement(batch, variant);
            run.graph = lower(batch, variant, own);
            throw_if_stopped(control.stop);
            run.schedule = placed_[variant].planner->order(run.graph);
          });
        }
        throw_if_stopped(control.stop);
        if (!outcome.impossible) {
          run.timeline = machine.run(run.graph, run.schedule);
          outcome.result = measure(run, machine);
          if (keep_plans) {
            outcome.plan =
                KeptPlan{.placement = std::move(own), .schedule = std::move(run.schedule)};
          }
        }
        ++ended;
        // A searching planner counts its replicas itself, as they end.
        if (control.planned && (!choice_.info->chooses_memory || outcome.impossible)) {
          control.planned(static_cast<std::size_t>(lowering_.problem().replicas));
        }
      },
      control.stop);
  if (ended < variants_.size()) {
    throw Stopped{};
  }
  const std::optional<Error>& first = outcomes.front().impossible;
  if (first && first->kind() == ErrorKind::Input &&
      std::ranges::all_of(outcomes, [](const Outcome& o) { return o.impossible.has_value(); })) {
    throw Error(*first);
  }
  return outcomes;
}

PlanRun PlacedSchedule::best_plan(const Batch& batch, const Machine& machine) const {
  if (variants_.size() == 1) {
    return plan(batch, 0);
  }
  const std::vector<std::vector<Outcome>> outcomes = {run(batch, machine)};
  return plan(batch, best_variant(records_of(variants_, outcomes)).value_or(0));
}

namespace {

VariantRecord record_of(const Variant& variant, std::span<const std::vector<Outcome>> iterations,
                        std::size_t row) {
  VariantRecord record{.label = variant.label};
  for (std::size_t k = 0; k < iterations.size(); ++k) {
    const Outcome& outcome = iterations[k][row];
    if (outcome.impossible) {
      record.impossible = outcome.impossible->what();
      record.impossible_on = k;
      break;
    }
    record.total += outcome.result.iteration;
    record.too_large += outcome.result.fits ? 0U : 1U;
    record.worst_peak = std::max(record.worst_peak, std::ranges::max(outcome.result.peak_memory));
  }
  return record;
}

}  // namespace

std::vector<VariantRecord> records_of(std::span<const Variant> variants,
                                      std::span<const std::vector<Outcome>> iterations) {
  std::vector<VariantRecord> records;
  records.reserve(variants.size());
  for (std::size_t row = 0; row < variants.size(); ++row) {
    records.push_back(record_of(variants[row], iterations, row));
  }
  return records;
}

namespace {

/// What every rank holds and runs at its peak.
void add_peak_contents(const PlanRun& run, IterationResult& result) {
  std::vector<Time> at;
  at.reserve(run.timeline.memory.size());
  for (const MemoryCurve& curve : run.timeline.memory) {
    at.push_back(curve.peak_at);
  }
  result.peak_contents = memory_contents(run.graph, run.schedule, run.timeline.spans, at);
  for (std::size_t r = 0; r < at.size(); ++r) {
    DIPSIM_CHECK(result.peak_contents[r].total() == run.timeline.memory[r].peak,
                 "the contents of memory do not add up to its peak");
  }
  for (const TaskId pass : passes_at(run.graph, run.timeline.spans, at)) {
    std::optional<PassName>& name = result.peak_passes.emplace_back();
    if (pass.valid()) {
      const Task& task = run.graph.task(pass);
      const Work& work = run.graph.works[task.work.row()];
      name = PassName{
          .op = task.op,
          .microbatch = work.portions.empty() ? MicrobatchId{} : work.portions.front().microbatch,
          .module = work.module};
    }
  }
}

}  // namespace

IterationResult measure(const PlanRun& run, const Machine& machine) {
  const EngineOptions& options = machine.engine;
  const TimelineAnalysis analysis = analyze(run.graph, run.schedule, run.timeline, options.send);
  IterationResult result{.makespan = run.timeline.makespan,
                         .iteration = run.timeline.iteration,
                         .lower_bound = lower_bound(run.graph).makespan,
                         .idle = {},
                         .bubble_ratio = analysis.bubble_ratio,
                         .bubble_overhead = analysis.bubble_overhead,
                         .mfu = analysis.mfu,
                         .lost = run.timeline.lost,
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
  add_peak_contents(run, result);
  if (options.jitter > 0.0) {
    result.lower_bound = Duration{0};  // it holds for the nominal times only
  }
  add_stragglers(run, machine, analysis, result);
  DIPSIM_CHECK(result.makespan >= result.lower_bound, "a timeline beats its lower bound");
  return result;
}

std::vector<Note> offload_notes(const TaskGraph& graph, const Schedule& schedule) {
  Bytes copied;
  for (const OffloadWindow& window : schedule.offloads) {
    const Rank& rank = graph.rank(graph.task(graph.pair(window.pair).f).rank);
    copied += std::int64_t{rank.tp} * rank.cp *
              graph.strategy(schedule.chosen[window.pair.row()]).offload;
  }
  if (schedule.offloads.empty()) {
    return {};
  }
  return {{"offload", fmt::format("{} of {} pairs, {:.1f} GiB out and in again over all GPUs",
                                  schedule.offloads.size(), graph.pairs.size(), to_gib(copied))}};
}

std::string recompute_of(const TaskGraph& graph, const Schedule& schedule) {
  std::string mode;
  for (const StrategyId chosen : schedule.chosen) {
    const std::string_view own = name_of(graph.strategy(chosen).mode);
    if (mode.empty()) {
      mode = own;
    } else if (mode != own) {
      return "per pair";
    }
  }
  return mode;
}

}  // namespace dipsim
