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

/// What all variants of one schedule did on one iteration.
using Outcomes = std::vector<Outcome>;

/// The schedule under the chosen variant.
ScheduleResult result_of(const PlacedSchedule& schedule, const std::vector<Outcomes>& iterations,
                         std::span<const VariantRecord> records, std::size_t chosen,
                         const Batch& sample, const EngineOptions& engine) {
  const PlannerOptions& options = schedule.variants()[chosen].options;
  const bool per_pair = schedule.choice().info->chooses_memory && options.dip.memory_choice;
  ScheduleResult result{
      .name = schedule.choice().label,
      .recompute = per_pair ? "per pair" : std::string(name_of(options.recompute)),
      .notes = {},
      .iterations = {},
      .sample = schedule.plan(sample, chosen)};
  if (schedule.choice().info->chooses_memory && !per_pair) {
    result.recompute = recompute_of(result.sample.graph, result.sample.schedule);
  }
  result.notes = result.sample.graph.placement.notes;
  for (Note& note : variant_notes(records, chosen, iterations.size())) {
    result.notes.push_back(std::move(note));
  }
  for (Note& note : offload_notes(result.sample.graph, result.sample.schedule)) {
    result.notes.push_back(std::move(note));
  }
  for (const Outcomes& outcomes : iterations) {
    result.iterations.push_back(outcomes[chosen].result);
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

std::vector<PlacedSchedule> place_all(const ExperimentSpec& spec, const Setup& setup,
                                      std::size_t jobs) {
  std::vector<PlacedSchedule> placed;
  placed.reserve(spec.schedules.size());
  for (const std::string& text : spec.schedules) {
    placed.push_back(naming(text, [&] {
      ScheduleChoice choice = parse_schedule(text, "schedules");
      choice.options.dip.jobs = jobs;
      const ScheduleInfo& info = *choice.info;
      return PlacedSchedule(std::move(choice), setup.lowering_of(info),
                            setup.batches_of(info)[setup.representative]);
    }));
  }
  return placed;
}

/// All runs of a comparison: row iteration * schedules + schedule.
struct Runs {
  std::vector<Outcomes> outcomes;
  std::vector<std::uint8_t> ended;
};

Runs run_all(const std::vector<PlacedSchedule>& schedules, const ExperimentSpec& spec,
             const Setup& setup, const RunControl& control) {
  const std::size_t width = schedules.size();
  const std::size_t total = width * setup.batches.size();
  Runs runs{std::vector<Outcomes>(total), std::vector<std::uint8_t>(total, 0)};
  std::atomic<std::size_t> done{0};
  // Iterations outside, schedules inside: a stop leaves whole iterations to compare.
  parallel_for(
      total, control.jobs,
      [&](std::size_t i) {
        const PlacedSchedule& schedule = schedules[i % width];
        runs.outcomes[i] = naming(schedule.choice().label, [&] {
          return schedule.run(setup.batches_of(*schedule.choice().info)[i / width], spec.engine);
        });
        runs.ended[i] = 1;
        if (control.progress) {
          control.progress(++done, total);
        }
      },
      control.stop);
  return runs;
}

/// The result of one schedule, or why it has none.
struct Finding {
  std::optional<ScheduleResult> result;
  std::string left_out;
};

Finding finding_of(const PlacedSchedule& schedule, const std::vector<Outcomes>& iterations,
                   const Batch& sample, const EngineOptions& engine) {
  const std::vector<VariantRecord> records = records_of(schedule.variants(), iterations);
  if (const std::optional<std::size_t> chosen = best_variant(records)) {
    return {.result = result_of(schedule, iterations, records, *chosen, sample, engine),
            .left_out = {}};
  }
  return {.result = std::nullopt,
          .left_out = fmt::format("left out, iteration {} is impossible: {}: {}",
                                  records.front().impossible_on, schedule.choice().label,
                                  records.front().impossible)};
}

/// The findings of all schedules on the first `iterations` iterations.
std::vector<Finding> findings_of(const std::vector<PlacedSchedule>& schedules, Runs runs,
                                 std::size_t iterations, const Setup& setup, std::size_t sample,
                                 const EngineOptions& engine, std::size_t jobs) {
  std::vector<Finding> findings(schedules.size());
  parallel_for(schedules.size(), jobs, [&](std::size_t s) {
    std::vector<Outcomes> own;
    own.reserve(iterations);
    for (std::size_t k = 0; k < iterations; ++k) {
      own.push_back(std::move(runs.outcomes[k * schedules.size() + s]));
    }
    const std::vector<Batch>& batches = setup.batches_of(*schedules[s].choice().info);
    findings[s] = finding_of(schedules[s], own, batches[sample], engine);
  });
  return findings;
}

}  // namespace

Comparison compare(const ExperimentSpec& spec, const Setup& setup, const RunControl& control) {
  const std::vector<PlacedSchedule> schedules = place_all(spec, setup, control.jobs);
  Runs runs = run_all(schedules, spec, setup, control);
  const auto unfinished = std::ranges::find(runs.ended, 0);
  const auto iterations =
      static_cast<std::size_t>(unfinished - runs.ended.begin()) / schedules.size();

  Comparison comparison{.title = setup.title,
                        .inputs = setup.inputs,
                        .loads = setup.loads,
                        .schedules = {},
                        .remarks = setup.remarks,
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
  for (Finding& finding : findings_of(schedules, std::move(runs), iterations, setup,
                                      comparison.sample_iteration, spec.engine, control.jobs)) {
    if (finding.result) {
      comparison.schedules.push_back(*std::move(finding.result));
    } else {
      comparison.warnings.push_back(std::move(finding.left_out));
    }
  }
  if (comparison.schedules.empty()) {
    fail_infeasible("compare", comparison.warnings.back());
  }
  return comparison;
}

}  // namespace dipsim
