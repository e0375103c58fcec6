// SPDX-License-Identifier: Apache-2.0
#include "experiment/compare.hpp"

#include "experiment/single.hpp"
#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
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

/// Largest peak of any rank on any iteration under a mode.
Bytes worst_peak(const std::vector<Outcomes>& iterations, std::size_t mode) {
  Bytes worst{};
  for (const Outcomes& outcomes : iterations) {
    worst = std::max(worst, std::ranges::max(outcomes[mode].peak_memory));
  }
  return worst;
}

/// Index of the lightest mode that fits every iteration, else of the one that needs the least
/// memory: with a split backward that need not be full recomputation.
std::size_t lightest_fitting(const std::vector<Outcomes>& iterations) {
  const std::size_t modes = iterations.front().size();
  std::size_t leanest = 0;
  for (std::size_t mode = 0; mode < modes; ++mode) {
    if (std::ranges::all_of(iterations, [&](const Outcomes& o) { return o[mode].fits; })) {
      return mode;
    }
    if (worst_peak(iterations, mode) < worst_peak(iterations, leanest)) {
      leanest = mode;
    }
  }
  return leanest;
}

/// Why a lighter mode than the one in use was not enough; nothing when none is lighter.
std::optional<Note> recompute_note(const std::vector<Outcomes>& iterations,
                                   std::span<const RecomputeMode> modes, std::size_t chosen) {
  if (modes.size() == 1 || chosen == 0) {
    return std::nullopt;
  }
  const std::size_t lighter = chosen - 1;
  const auto too_large =
      std::ranges::count_if(iterations, [&](const Outcomes& o) { return !o[lighter].fits; });
  return Note{"recompute",
              fmt::format("{}: with {} a rank exceeds its limit on {} of {} iterations, at worst "
                          "with {:.2f} GiB",
                          name_of(modes[chosen]), name_of(modes[lighter]), too_large,
                          iterations.size(), to_gib(worst_peak(iterations, lighter)))};
}

ScheduleResult result_of(const PlacedSchedule& schedule, const std::vector<Outcomes>& iterations,
                         const Batch& sample, const EngineOptions& engine) {
  const std::size_t chosen = lightest_fitting(iterations);
  const std::vector<RecomputeMode> modes = schedule.modes();
  const RecomputeMode mode = modes[chosen];
  ScheduleResult result{
      .name = schedule.choice().label,
      .recompute = mode == RecomputeMode::Mixed ? "per pair" : std::string(name_of(mode)),
      .notes = schedule.placement().notes,
      .iterations = {},
      .sample = schedule.plan(sample, mode)};
  if (std::optional<Note> note = recompute_note(iterations, modes, chosen)) {
    result.notes.push_back(*std::move(note));
  }
  for (const Outcomes& outcomes : iterations) {
    result.iterations.push_back(outcomes[chosen]);
  }
  result.sample.timeline = simulate(result.sample.graph, result.sample.schedule, engine);
  return result;
}

/// Errors name the schedule that they come from.
template <class Body>
auto naming(const std::string& schedule, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.kind(), error.where().empty() ? schedule : schedule + ": " + error.where(),
                error.message());
  }
}

std::vector<PlacedSchedule> place_all(const ExperimentSpec& spec, const Setup& setup) {
  std::vector<PlacedSchedule> placed;
  placed.reserve(spec.schedules.size());
  for (const std::string& text : spec.schedules) {
    placed.push_back(naming(text, [&] {
      return PlacedSchedule(parse_schedule(text, "schedules"), *setup.lowering,
                            setup.batches[setup.representative]);
    }));
  }
  return placed;
}

/// All runs of a comparison: row iteration * schedules + schedule.
struct Runs {
  std::vector<Outcomes> outcomes;
  std::vector<std::string> impossible;  ///< why nothing fits, where that is so
  std::vector<std::uint8_t> ended;
};

Runs run_all(const std::vector<PlacedSchedule>& schedules, const ExperimentSpec& spec,
             const Setup& setup, const RunControl& control) {
  const std::size_t width = schedules.size();
  const std::size_t total = width * setup.batches.size();
  Runs runs{std::vector<Outcomes>(total), std::vector<std::string>(total),
            std::vector<std::uint8_t>(total, 0)};
  std::atomic<std::size_t> done{0};
  // Iterations outside, schedules inside: a stop leaves whole iterations to compare.
  parallel_for(
      total, control.jobs,
      [&](std::size_t i) {
        const PlacedSchedule& schedule = schedules[i % width];
        try {
          runs.outcomes[i] = naming(schedule.choice().label, [&] {
            return run_iteration(schedule, setup.batches[i / width], spec.engine);
          });
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::Infeasible) {
            throw;
          }
          runs.impossible[i] = error.what();
        }
        runs.ended[i] = 1;
        if (control.progress) {
          control.progress(++done, total);
        }
      },
      control.stop);
  return runs;
}

/// The first reason why schedule `s` can't run some iteration; nothing when it can run all.
std::optional<std::string> impossible(const Runs& runs, std::size_t s, std::size_t width,
                                      std::size_t iterations) {
  for (std::size_t k = 0; k < iterations; ++k) {
    const std::string& reason = runs.impossible[k * width + s];
    if (!reason.empty()) {
      return fmt::format("left out, iteration {} is impossible: {}", k, reason);
    }
  }
  return std::nullopt;
}

}  // namespace

Comparison compare(const ExperimentSpec& spec, const Setup& setup, const RunControl& control) {
  const std::vector<PlacedSchedule> schedules = place_all(spec, setup);
  const std::size_t width = schedules.size();
  Runs runs = run_all(schedules, spec, setup, control);
  const auto unfinished = std::ranges::find(runs.ended, 0);
  const auto iterations = static_cast<std::size_t>(unfinished - runs.ended.begin()) / width;

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
  std::vector<std::size_t> possible;
  for (std::size_t s = 0; s < width; ++s) {
    if (const std::optional<std::string> reason = impossible(runs, s, width, iterations)) {
      comparison.warnings.push_back(*reason);
    } else {
      possible.push_back(s);
    }
  }
  if (possible.empty()) {
    fail_infeasible("compare", comparison.warnings.back());
  }
  comparison.schedules.resize(possible.size());
  parallel_for(possible.size(), control.jobs, [&](std::size_t p) {
    std::vector<Outcomes> of_schedule;
    of_schedule.reserve(iterations);
    for (std::size_t k = 0; k < iterations; ++k) {
      of_schedule.push_back(std::move(runs.outcomes[k * width + possible[p]]));
    }
    comparison.schedules[p] = result_of(schedules[possible[p]], of_schedule,
                                        setup.batches[comparison.sample_iteration], spec.engine);
  });
  return comparison;
}

}  // namespace dipsim
