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

/// An iteration whose plans were kept, for the pictures.
struct Sample {
  std::size_t iteration = 0;
  const Batch& batch;
};

/// The schedule under the chosen variant. Takes over its plan of the sample.
ScheduleResult result_of(const PlacedSchedule& schedule, std::vector<Outcomes>& iterations,
                         std::span<const VariantRecord> records, std::size_t chosen,
                         const Sample& sample, const Machine& machine) {
  const PlannerOptions& options = schedule.variants()[chosen].options;
  const bool per_pair = schedule.choice().info->chooses_memory && options.dip.memory_choice;
  ScheduleResult result{
      .name = schedule.choice().label,
      .recompute = per_pair ? "per pair" : std::string(name_of(options.recompute)),
      .notes = {},
      .iterations = {},
      .sample = schedule.restore(sample.batch, chosen,
                                 *std::move(iterations[sample.iteration][chosen].plan))};
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
  result.sample.timeline = machine.run(result.sample.graph, result.sample.schedule);
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

/// Counts what all threads report, for the caller's callbacks.
class Watch {
 public:
  explicit Watch(const RunControl& control) : control_(control) {}

  [[nodiscard]] PlanControl of_schedule(const std::string& name) {
    PlanControl control{.jobs = control_.jobs, .stop = control_.stop};
    if (control_.progress) {
      control.planned = [this](std::size_t replicas) {
        const std::size_t done = planned_ += replicas;
        control_.progress(std::min(done, total_.load()), total_);
      };
    }
    if (control_.placing) {
      control.tried = [this, name] { control_.placing(name, ++tried_); };
    }
    return control;
  }

  void expect(std::size_t replica_plans) { total_ = replica_plans; }

 private:
  const RunControl& control_;
  std::atomic<std::size_t> planned_{0};
  std::atomic<std::size_t> total_{0};
  std::atomic<std::size_t> tried_{0};
};

/// What is asked for by name must not be left out without a word.
void require_host_link(const ScheduleChoice& choice, const Cluster& cluster) {
  if (choice.options.dip.offload.value_or(false) && cluster.host_gbytes_per_s == 0.0) {
    fail_input("offload=on",
               fmt::format("cluster {} has no link to host memory (host_gbytes_per_s 0); legal: "
                           "offload=off",
                           cluster.name));
  }
}

std::vector<PlacedSchedule> place_all(const ExperimentSpec& spec, const Setup& setup,
                                      const RunControl& control, Watch& watch) {
  std::vector<std::optional<PlacedSchedule>> placed(spec.schedules.size());
  parallel_for(
      placed.size(), control.jobs,
      [&](std::size_t s) {
        const std::string& text = spec.schedules[s];
        naming(text, [&] {
          ScheduleChoice choice = parse_schedule(text, "schedules");
          require_host_link(choice, setup.lowering->cluster());
          choice.options.control = watch.of_schedule(text);
          const ScheduleInfo& info = *choice.info;
          placed[s].emplace(choice, setup.lowering_of(info),
                            setup.batches_of(info)[setup.representative]);
        });
      },
      control.stop);
  throw_if_stopped(control.stop);
  std::vector<PlacedSchedule> all;
  for (std::optional<PlacedSchedule>& each : placed) {
    all.push_back(*std::move(each));
  }
  return all;
}

/// Plans of one replica that a comparison makes.
std::size_t replica_plans(std::span<const PlacedSchedule> schedules, const Setup& setup) {
  std::size_t plans = 0;
  for (const PlacedSchedule& schedule : schedules) {
    const Problem& problem = setup.lowering_of(*schedule.choice().info).problem();
    plans += schedule.variants().size() * static_cast<std::size_t>(problem.replicas);
  }
  return plans * setup.batches.size();
}

Machine machine_of(const PlacedSchedule& schedule, const Setup& setup,
                   const EngineOptions& engine) {
  return {.engine = engine, .cluster = &setup.lowering_of(*schedule.choice().info).cluster()};
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
  // Iterations outside, schedules inside: a stop leaves whole iterations to compare.
  parallel_for(
      total, control.jobs,
      [&](std::size_t i) {
        const PlacedSchedule& schedule = schedules[i % width];
        const std::size_t iteration = i / width;
        const bool keep = iteration == 0 || iteration == setup.representative;
        try {
          runs.outcomes[i] = naming(schedule.choice().label, [&] {
            return schedule.run(setup.batches_of(*schedule.choice().info)[iteration],
                                machine_of(schedule, setup, spec.engine), keep);
          });
          runs.ended[i] = 1;
        } catch (const Stopped&) {  // has not ended
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

Finding finding_of(const PlacedSchedule& schedule, std::vector<Outcomes>& iterations,
                   const Sample& sample, const Machine& machine) {
  const std::vector<VariantRecord> records = records_of(schedule.variants(), iterations);
  if (const std::optional<std::size_t> chosen = best_variant(records)) {
    return {.result = result_of(schedule, iterations, records, *chosen, sample, machine),
            .left_out = {}};
  }
  return {.result = std::nullopt,
          .left_out = fmt::format("left out, iteration {} is impossible: {}: {}",
                                  records.front().impossible_on, schedule.choice().label,
                                  records.front().impossible)};
}

/// What is left of a comparison: all of it, or what a stop leaves.
struct Finished {
  std::size_t iterations = 0;
  std::vector<std::size_t> schedules;  ///< that have ended all of these
};

Finished finished(std::span<const std::uint8_t> ended, std::size_t width) {
  Finished left;
  const auto unfinished = std::ranges::find(ended, 0);
  left.iterations = static_cast<std::size_t>(unfinished - ended.begin()) / width;
  for (std::size_t s = 0; s < width; ++s) {
    if (left.iterations > 0 || ended[s] != 0) {
      left.schedules.push_back(s);
    }
  }
  left.iterations = left.schedules.empty() ? 0 : std::max<std::size_t>(left.iterations, 1);
  return left;
}

/// The findings of the schedules that are left.
std::vector<Finding> findings_of(const std::vector<PlacedSchedule>& schedules, Runs runs,
                                 const Finished& left, const Setup& setup, std::size_t sample,
                                 const EngineOptions& engine, std::size_t jobs) {
  std::vector<Finding> findings(left.schedules.size());
  parallel_for(findings.size(), jobs, [&](std::size_t f) {
    const std::size_t s = left.schedules[f];
    std::vector<Outcomes> own;
    own.reserve(left.iterations);
    for (std::size_t k = 0; k < left.iterations; ++k) {
      own.push_back(std::move(runs.outcomes[k * schedules.size() + s]));
    }
    const std::vector<Batch>& batches = setup.batches_of(*schedules[s].choice().info);
    findings[f] = finding_of(schedules[s], own, {.iteration = sample, .batch = batches[sample]},
                             machine_of(schedules[s], setup, engine));
  });
  return findings;
}

}  // namespace

Comparison compare(const ExperimentSpec& spec, const Setup& setup, const RunControl& control) {
  Comparison comparison{.title = setup.title,
                        .inputs = setup.inputs,
                        .loads = setup.loads,
                        .schedules = {},
                        .remarks = setup.remarks,
                        .warnings = setup.warnings,
                        .sample_iteration = setup.representative,
                        .requested_iterations = setup.batches.size()};
  Watch watch(control);
  std::vector<PlacedSchedule> schedules;
  Finished left;
  Runs runs;
  try {
    schedules = place_all(spec, setup, control, watch);
    watch.expect(replica_plans(schedules, setup));
    runs = run_all(schedules, spec, setup, control);
    left = finished(runs.ended, schedules.size());
  } catch (const Stopped&) {  // nothing is left
  }
  for (LoadSeries& load : comparison.loads) {
    load.per_iteration.resize(left.iterations);
  }
  if (left.iterations == 0) {
    return comparison;
  }
  comparison.sample_iteration = setup.representative < left.iterations ? setup.representative : 0;
  for (std::size_t s = 0; s < schedules.size(); ++s) {
    if (std::ranges::find(left.schedules, s) == left.schedules.end()) {
      comparison.warnings.push_back(
          fmt::format("left out, as it was interrupted before it had planned iteration 0: {}",
                      schedules[s].choice().label));
    }
  }
  for (Finding& finding : findings_of(schedules, std::move(runs), left, setup,
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
