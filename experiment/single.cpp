// SPDX-License-Identifier: Apache-2.0
#include "experiment/single.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
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

PlanRun PlacedSchedule::plan(const Batch& batch, std::size_t variant) const {
  const Placed& placed = placed_[variant];
  if (placed.impossible) {
    throw Error(*placed.impossible);
  }
  const Planner& planner = *placed.planner;
  PlanRun run;
  if (variants_[variant].options.place_each_batch) {
    Placement own = planner.place(lowering_, batch);
    own.notes.push_back({"placed", kPlacedEachBatch});
    run.graph = lowering_.lower(planner.slice(own, batch, lowering_), batch);
  } else {
    run.graph = lowering_.lower(planner.slice(placed.placement, batch, lowering_), batch);
  }
  run.schedule = planner.order(run.graph);
  return run;
}

std::vector<Outcome> PlacedSchedule::run(const Batch& batch, const EngineOptions& engine) const {
  std::vector<Outcome> outcomes(variants_.size());
  for (std::size_t variant = 0; variant < variants_.size(); ++variant) {
    PlanRun run;
    outcomes[variant].impossible = reason_against([&] { run = plan(batch, variant); });
    if (!outcomes[variant].impossible) {
      run.timeline = simulate(run.graph, run.schedule, engine);
      outcomes[variant].result = measure(run, engine);
    }
  }
  const std::optional<Error>& first = outcomes.front().impossible;
  if (first && first->kind() == ErrorKind::Input &&
      std::ranges::all_of(outcomes, [](const Outcome& o) { return o.impossible.has_value(); })) {
    throw Error(*first);
  }
  return outcomes;
}

PlanRun PlacedSchedule::best_plan(const Batch& batch) const {
  if (variants_.size() == 1) {
    return plan(batch, 0);
  }
  const std::vector<std::vector<Outcome>> outcomes = {run(batch, {})};
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

IterationResult measure(const PlanRun& run, const EngineOptions& options) {
  const TimelineAnalysis analysis = analyze(run.graph, run.schedule, run.timeline, options.send);
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
