// SPDX-License-Identifier: Apache-2.0
#include "validate/paper.hpp"

#include "experiment/compare.hpp"
#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <span>
#include <system_error>
#include <utility>

namespace dipsim {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhere = "dip_paper.csv";

fs::path folder() { return config_folder() / "experiments" / "paper"; }

[[noreturn]] void fail_claim(const PaperClaim& claim, const std::string& message) {
  fail_input(fmt::format("{}: line {}", kWhere, claim.line), message);
}

std::string variant_of(const ScheduleResult& result) {
  for (const Note& note : result.notes) {
    if (note.name == "chosen") {
      return note.text;
    }
  }
  return result.recompute;
}

PaperSchedule schedule_of(const Comparison& comparison, std::size_t index) {
  const ScheduleResult& result = comparison.schedules[index];
  const ScheduleSummary summary = summarize(comparison, index);
  PaperSchedule out{.name = result.name,
                    .variant = variant_of(result),
                    .iteration_seconds = {},
                    .mfu = summary.mfu,
                    .peak = {},
                    .first_peak = {},
                    .fits = summary.fits};
  out.iteration_seconds.reserve(result.iterations.size());
  for (const IterationResult& iteration : result.iterations) {
    out.iteration_seconds.push_back(to_seconds(iteration.iteration));
    out.peak = std::max(out.peak, *std::ranges::max_element(iteration.peak_memory));
    out.first_peak = std::max(out.first_peak, iteration.peak_memory.front());
  }
  return out;
}

PaperExperiment run_experiment(const std::string& name, const ExperimentSpec& spec,
                               const RunControl& control) {
  const Setup setup = prepare(spec, control.stop);
  PaperExperiment out{
      .name = name, .title = setup.title, .trace = spec.trace, .schedules = {}, .warnings = {}};
  if (control.stop.stop_requested()) {
    return out;
  }
  const Comparison comparison = compare(spec, setup, control);
  out.warnings = comparison.warnings;
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    out.schedules.push_back(schedule_of(comparison, i));
  }
  return out;
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double mean_seconds(const PaperClaim& claim, const PaperSchedule& schedule) {
  const std::span<const double> all(schedule.iteration_seconds);
  const auto last =
      claim.last_iteration == 0 ? all.size() : static_cast<std::size_t>(claim.last_iteration);
  const auto first = static_cast<std::size_t>(claim.first_iteration) - 1;
  if (first >= last || last > all.size()) {
    fail_claim(claim, fmt::format("iterations {} to {} of {}", first + 1, last, all.size()));
  }
  return mean(all.subspan(first, last - first));
}

/// The number behind `prefix` of the fastest schedule that begins with it.
void find_fastest_slice(const PaperExperiment& experiment, PaperFinding& finding) {
  const PaperClaim& claim = finding.claim;
  std::optional<double>& slice = finding.value;
  double least = 0.0;
  for (const PaperSchedule& schedule : experiment.schedules) {
    double number = 0.0;
    const char* end = schedule.name.data() + schedule.name.size();
    if (!schedule.name.starts_with(claim.schedule)) {
      continue;
    }
    const auto [at, error] =
        std::from_chars(schedule.name.data() + claim.schedule.size(), end, number);
    if (error == std::errc{} && at == end) {
      finding.fits = finding.fits.value_or(true) && schedule.fits;
      const double seconds = mean_seconds(claim, schedule);
      if (!slice || seconds < least) {
        slice = number;
        least = seconds;
      }
    }
  }
}

/// Known before anything is run, so that hours of work do not end in a typing error.
void require_schedule(const PaperClaim& claim, const std::string& schedule,
                      const ExperimentSpec& spec) {
  const auto stands = [&](const std::string& name) {
    return claim.quantity == PaperQuantity::FastestSlice ? name.starts_with(schedule)
                                                         : name == schedule;
  };
  if (!std::ranges::any_of(spec.schedules, stands)) {
    const std::vector<std::string_view> known(spec.schedules.begin(), spec.schedules.end());
    fail_claim(claim, unknown_name("schedule of " + claim.experiment, schedule, known));
  }
}

void require_known(const PaperClaim& claim, const ExperimentSpec& spec) {
  require_schedule(claim, claim.schedule, spec);
  if (!claim.baseline.empty()) {
    require_schedule(claim, claim.baseline, spec);
  }
  if (std::max(claim.first_iteration, claim.last_iteration) > spec.iterations) {
    fail_claim(claim, fmt::format("{} has {} iterations", claim.experiment, spec.iterations));
  }
}

std::vector<std::string> chosen_names(const std::vector<PaperClaim>& claims,
                                      const PaperOptions& options) {
  const std::vector<std::string> all = paper_experiment_names();
  const std::vector<std::string_view> known(all.begin(), all.end());
  for (const PaperClaim& claim : claims) {
    if (std::ranges::find(all, claim.experiment) == all.end()) {
      fail_claim(claim, unknown_name("experiment", claim.experiment, known));
    }
  }
  for (const std::string& name : options.experiments) {
    if (std::ranges::find(all, name) == all.end()) {
      fail_input("--experiment", unknown_name("experiment of the paper", name, known));
    }
  }
  return options.experiments.empty() ? all : options.experiments;
}

}  // namespace

double PaperSchedule::seconds() const { return mean(iteration_seconds); }

const PaperSchedule* PaperExperiment::find(std::string_view schedule) const {
  const auto found = std::ranges::find(schedules, schedule, &PaperSchedule::name);
  return found == schedules.end() ? nullptr : &*found;
}

std::optional<double> PaperFinding::ratio() const {
  return value ? std::optional(*value / std::clamp(*value, claim.low, claim.high)) : std::nullopt;
}

std::vector<std::string> paper_experiment_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

PaperFinding find_claim(const PaperClaim& claim, const PaperExperiment& experiment) {
  PaperFinding finding{.claim = claim, .value = std::nullopt};
  if (claim.quantity == PaperQuantity::FastestSlice) {
    find_fastest_slice(experiment, finding);
    return finding;
  }
  const PaperSchedule* schedule = experiment.find(claim.schedule);
  const PaperSchedule* baseline =
      claim.baseline.empty() ? schedule : experiment.find(claim.baseline);
  if (schedule == nullptr || baseline == nullptr) {
    return finding;
  }
  finding.fits = schedule->fits && baseline->fits;
  switch (claim.quantity) {
    case PaperQuantity::Seconds:
      finding.value = mean_seconds(claim, *schedule);
      break;
    case PaperQuantity::Throughput:
      finding.value = mean_seconds(claim, *baseline) / mean_seconds(claim, *schedule);
      break;
    case PaperQuantity::Peak:
      finding.value = static_cast<double>(schedule->first_peak.count) /
                      static_cast<double>(baseline->first_peak.count);
      break;
    case PaperQuantity::Mfu:
      finding.value = schedule->mfu;
      break;
    case PaperQuantity::FastestSlice:
      break;
  }
  return finding;
}

PaperReport run_paper(const std::vector<PaperClaim>& claims, const PaperOptions& options) {
  std::vector<std::string> names = chosen_names(claims, options);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());

  std::vector<ExperimentSpec> specs;
  for (const std::string& name : names) {
    specs.push_back(read_experiment(folder() / (name + ".json")));
    for (const PaperClaim& claim : claims) {
      if (claim.experiment == name) {
        require_known(claim, specs.back());
      }
    }
  }

  PaperReport report;
  for (std::size_t i = 0; i < names.size() && !options.stop.stop_requested(); ++i) {
    PaperExperiment experiment =
        run_experiment(names[i], specs[i],
                       {.jobs = options.jobs,
                        .stop = options.stop,
                        .progress = [&](std::size_t done, std::size_t total) {
                          if (options.progress) {
                            options.progress(100 * i + 100 * done / total, 100 * names.size());
                          }
                        }});
    if (!options.stop.stop_requested()) {
      report.experiments.push_back(std::move(experiment));
    }
  }
  for (const PaperClaim& claim : claims) {
    const auto found =
        std::ranges::find(report.experiments, claim.experiment, &PaperExperiment::name);
    if (found != report.experiments.end()) {
      report.findings.push_back(find_claim(claim, *found));
    }
  }
  return report;
}

}  // namespace dipsim
