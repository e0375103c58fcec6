// SPDX-License-Identifier: Apache-2.0
#include "experiment/compare.hpp"

#include "experiment/single.hpp"
#include "sim/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace dipsim {

namespace {

/// The outcome of one schedule on one iteration under every mode that it may end up with.
using Outcomes = std::vector<IterationResult>;

Outcomes run_iteration(const PlacedSchedule& schedule, const Batch& batch,
                       const EngineOptions& engine) {
  const std::vector<RecomputeMode> modes = schedule.modes();
  PlanRun run = schedule.plan(batch, modes.front());
  Outcomes outcomes;
  for (const RecomputeMode mode : modes) {
    if (modes.size() > 1) {
      run.schedule.chosen = uniform_strategies(run.graph, mode);
    }
    run.timeline = simulate(run.graph, run.schedule, engine);
    outcomes.push_back(measure(run, engine));
  }
  return outcomes;
}

/// Index of the lightest mode that fits every iteration, else of the most saving one.
std::size_t lightest_fitting(const std::vector<Outcomes>& iterations) {
  const std::size_t modes = iterations.front().size();
  for (std::size_t mode = 0; mode < modes; ++mode) {
    if (std::ranges::all_of(iterations, [&](const Outcomes& o) { return o[mode].fits; })) {
      return mode;
    }
  }
  return modes - 1;
}

ScheduleResult result_of(const PlacedSchedule& schedule, const std::vector<Outcomes>& iterations,
                         const Batch& sample, const EngineOptions& engine) {
  const std::size_t chosen = lightest_fitting(iterations);
  const RecomputeMode mode = schedule.modes()[chosen];
  ScheduleResult result{
      .name = schedule.choice().label,
      .recompute = mode == RecomputeMode::Mixed ? "per pair" : std::string(name_of(mode)),
      .notes = schedule.placement().notes,
      .iterations = {},
      .sample = schedule.plan(sample, mode)};
  for (const Outcomes& outcomes : iterations) {
    result.iterations.push_back(outcomes[chosen]);
  }
  result.sample.timeline = simulate(result.sample.graph, result.sample.schedule, engine);
  return result;
}

std::vector<PlacedSchedule> place_all(const ExperimentSpec& spec, const Setup& setup) {
  std::vector<PlacedSchedule> placed;
  placed.reserve(spec.schedules.size());
  for (const std::string& text : spec.schedules) {
    placed.emplace_back(parse_schedule(text, "schedules"), *setup.lowering,
                        setup.batches[setup.representative]);
  }
  return placed;
}

}  // namespace

Comparison compare(const ExperimentSpec& spec, const Setup& setup, const RunControl& control) {
  const std::vector<PlacedSchedule> schedules = place_all(spec, setup);
  const std::size_t width = schedules.size();
  const std::size_t total = width * setup.batches.size();

  // Iterations outside, schedules inside: a stop leaves whole iterations to compare.
  std::vector<Outcomes> outcomes(total);
  std::atomic<std::size_t> done{0};
  parallel_for(
      total, control.jobs,
      [&](std::size_t i) {
        outcomes[i] = run_iteration(schedules[i % width], setup.batches[i / width], spec.engine);
        if (control.progress) {
          control.progress(++done, total);
        }
      },
      control.stop);
  const auto unfinished =
      std::ranges::find_if(outcomes, [](const Outcomes& o) { return o.empty(); });
  const auto iterations = static_cast<std::size_t>(unfinished - outcomes.begin()) / width;

  Comparison comparison{.title = setup.title,
                        .inputs = setup.inputs,
                        .loads = setup.loads,
                        .schedules = {},
                        .warnings = setup.warnings,
                        .sample_iteration = setup.representative,
                        .requested_iterations = setup.batches.size()};
  for (LoadSeries& load : comparison.loads) {
    load.per_iteration.resize(iterations);
  }
  if (iterations == 0) {
    return comparison;
  }
  comparison.sample_iteration = std::min(setup.representative, iterations - 1);
  comparison.schedules.resize(width);
  parallel_for(width, control.jobs, [&](std::size_t s) {
    std::vector<Outcomes> of_schedule;
    for (std::size_t k = 0; k < iterations; ++k) {
      of_schedule.push_back(std::move(outcomes[k * width + s]));
    }
    comparison.schedules[s] = result_of(schedules[s], of_schedule,
                                        setup.batches[comparison.sample_iteration], spec.engine);
  });
  return comparison;
}

}  // namespace dipsim
