// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output_folder.hpp"
#include "cli/terminal.hpp"
#include "experiment/compare.hpp"
#include "experiment/setup.hpp"
#include "report/comparison_table.hpp"
#include "sim/core/error.hpp"
#include "sim/core/files.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace dipsim::cli {

namespace {

struct PlanFlags {
  ExperimentFlags experiment;
  OutputFlags output;
  std::string out;
  std::int64_t iteration = 0;
};

void run_plan(const CLI::App& app, const PlanFlags& flags) {
  const ExperimentSpec spec = flags.experiment.spec(app);
  // Only the asked-for batch is planned; the placement rests on it too.
  const Setup setup = prepare_iteration(spec, static_cast<std::size_t>(flags.iteration));
  Comparison comparison;
  {
    ProgressLine progress("planning: replica plans", flags.output.quiet);
    comparison = compare(
        spec, setup,
        {.progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); },
         .placing =
             [&](const std::string& schedule, std::size_t tried) {
               progress.note(fmt::format("placing {}: {} placements tried", schedule, tried));
             }});
  }
  const bool fits = comparison.schedules.front().iterations.front().fits;
  if (fits) {
    write_file(flags.out, plan_text(comparison, 0, static_cast<std::size_t>(flags.iteration),
                                    setup.lowering->cluster(), spec.engine));
  }
  print_result(render_comparison(comparison, flags.output.parsed()));
  if (!fits) {
    fail_infeasible("plan", "the plan does not fit in memory; nothing was written");
  }
  if (!flags.output.quiet) {
    fmt::print(stderr, "plan: {}\n", flags.out);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App& command = *app.add_subcommand(
      "plan", "Plan one batch with one schedule and write a file that simulate runs");
  flags->experiment.add(command, false);
  add_whole(command, "--iteration", flags->iteration, 0, kMaxIterations - 1,
            "the batch: iteration of the trace, from 0");
  command.add_option("--out", flags->out, "plan file to write")->required();
  flags->output.add(command);
  command.callback([&command, flags] { run_plan(command, *flags); });
}

}  // namespace dipsim::cli
