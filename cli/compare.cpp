// SPDX-License-Identifier: Apache-2.0
#include "experiment/compare.hpp"

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output_folder.hpp"
#include "cli/terminal.hpp"
#include "experiment/setup.hpp"
#include "report/comparison_table.hpp"
#include "report/condition.hpp"
#include "report/json.hpp"
#include "sim/core/error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <memory>

namespace dipsim::cli {

namespace {

struct CompareFlags {
  ExperimentFlags experiment;
  OutputFlags output;
  std::string out;
  std::int64_t jobs = 0;
  std::vector<std::string> fail_if;
};

void require_none_holds(const std::vector<Condition>& conditions, const std::string& json) {
  for (const Condition& condition : conditions) {
    if (condition.holds(json)) {
      throw Error(ErrorKind::Regression, "--fail-if", condition.text() + " holds");
    }
  }
}

/// A result with the schedules of the experiment and nothing measured: a condition that names what
/// is not there is refused before the work starts.
void require_known_names(const std::vector<Condition>& conditions, const ExperimentSpec& spec,
                         const Setup& setup) {
  Comparison shape{.title = setup.title,
                   .inputs = setup.inputs,
                   .loads = {},
                   .schedules = {},
                   .warnings = {},
                   .sample_iteration = 0,
                   .requested_iterations = 1};
  const IterationResult iteration{
      .idle = {}, .peak_memory = std::vector<Bytes>(setup.lowering->problem().ranks.size())};
  for (const std::string& name : spec.schedules) {
    shape.schedules.push_back(
        {.name = name, .recompute = {}, .notes = {}, .iterations = {iteration}, .sample = {}});
  }
  const std::string json = result_json(shape);
  for (const Condition& condition : conditions) {
    condition.check(json);
  }
}

void run_compare(const CLI::App& app, const CompareFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  const InterruptWatch interrupt;
  // Conditions and the folder are checked first: hours of work must not end in a typing error.
  const std::vector<Condition> conditions(flags.fail_if.begin(), flags.fail_if.end());
  const ExperimentSpec spec = flags.experiment.spec(app);
  std::unique_ptr<OutputFolder> folder;
  if (!flags.out.empty()) {
    folder = std::make_unique<OutputFolder>(flags.out);
  }

  const Setup setup = prepare(spec, interrupt.token());
  if (interrupt.interrupted()) {
    throw Interrupted{};
  }
  require_known_names(conditions, spec, setup);
  Comparison comparison;
  {
    ProgressLine progress("comparing: replica plans", flags.output.quiet);
    comparison = compare(
        spec, setup,
        {.jobs = static_cast<std::size_t>(flags.jobs),
         .stop = interrupt.token(),
         .progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); },
         .placing =
             [&](const std::string& schedule, std::size_t tried) {
               progress.note(fmt::format("placing {}: {} placements tried", schedule, tried));
             }});
  }
  if (comparison.schedules.empty()) {
    throw Interrupted{};
  }
  if (folder) {
    folder->add_comparison(comparison, setup.lowering->cluster(), spec.engine);
    folder->add_run_facts(std::chrono::steady_clock::now() - start,
                          static_cast<std::size_t>(flags.jobs));
    folder->commit();
    if (!flags.output.quiet) {
      fmt::print(stderr, "report: {}\n", (folder->path() / "report.html").string());
    }
  }
  print_result(render_comparison(comparison, flags.output.parsed()));
  if (interrupt.interrupted()) {
    throw Interrupted{};
  }
  require_none_holds(conditions, result_json(comparison));
  if (winner(comparison).empty()) {
    fail_infeasible("compare", "no schedule fits in memory on every iteration");
  }
}

}  // namespace

void add_compare(CLI::App& app) {
  const auto flags = std::make_shared<CompareFlags>();
  CLI::App& command = *app.add_subcommand(
      "compare", "Run several schedules on every iteration of a trace and say who wins and why");
  flags->experiment.add(command, true);
  command.add_option("--out", flags->out,
                     "folder for report.html, result.json, timelines and replayable plans");
  add_whole(command, "--jobs", flags->jobs, 0, 1024, "threads; 0: all cores");
  command.add_option("--fail-if", flags->fail_if,
                     "exit with code 5 when this holds, e.g.\n"
                     "'\"dip\".iteration_time_ms.mean > 0.95 * \"1f1b\".iteration_time_ms.mean'");
  flags->output.add(command);
  command.callback([&command, flags] { run_compare(command, *flags); });
}

}  // namespace dipsim::cli
