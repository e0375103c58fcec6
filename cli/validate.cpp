// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/paper_tables.hpp"
#include "cli/terminal.hpp"
#include "cli/validation_tables.hpp"
#include "sim/core/error.hpp"
#include "validate/paper.hpp"
#include "validate/validation.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dipsim::cli {

namespace {

struct ValidateFlags {
  std::string published;
  std::vector<std::string> sets;
  bool rows = false;
  bool paper = false;
  std::vector<std::string> experiments;
  std::int64_t jobs = 0;
  OutputFlags output;
};

void run_validate(const ValidateFlags& flags) {
  const InterruptWatch interrupt;
  const PublishedData data =
      flags.published.empty() ? PublishedData() : PublishedData(flags.published);
  Validation validation;
  {
    ProgressLine progress("validating", flags.output.quiet);
    validation = run_validation(data, {.names = flags.sets,
                                       .jobs = static_cast<std::size_t>(flags.jobs),
                                       .stop = interrupt.token(),
                                       .progress = [&](std::size_t done, std::size_t total) {
                                         progress.update(done, total);
                                       }});
  }
  if (!flags.sets.empty() && !validation.missing.empty()) {
    const std::string& table = validation.missing.front();
    fail_input("--set", flags.published.empty()
                            ? table + ".csv is not among the shipped tables; give --published DIR"
                            : table + ".csv is neither in " + flags.published +
                                  " nor among the shipped tables");
  }
  print_result(
      render_validation(validation, flags.rows || !flags.sets.empty(), flags.output.parsed()));
  if (interrupt.interrupted()) {
    throw Interrupted{};
  }
}

void run_paper_experiments(const ValidateFlags& flags) {
  const InterruptWatch interrupt;
  const std::optional<CsvTable> table = PublishedData().table("dip_paper");
  if (!table) {
    fail_environment((shipped_published_folder() / "dip_paper.csv").string(), "is missing");
  }
  PaperReport report;
  {
    ProgressLine progress("running the experiments of the paper", flags.output.quiet);
    report = run_paper(
        read_paper_claims(*table),
        {.experiments = flags.experiments,
         .jobs = static_cast<std::size_t>(flags.jobs),
         .stop = interrupt.token(),
         .progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); }});
  }
  print_result(render_paper(report, flags.output.parsed()));
  if (interrupt.interrupted()) {
    throw Interrupted{};
  }
}

}  // namespace

void add_validate(CLI::App& app) {
  const auto flags = std::make_shared<ValidateFlags>();
  CLI::App& command = *app.add_subcommand(
      "validate", "Hold predictions against measurements that others published");
  CLI::Option* published =
      command.add_option("--published", flags->published,
                         "folder with more tables (NAME.csv); the shipped ones are small [none]");
  CLI::Option* set = command.add_option(
      "--set", flags->sets,
      "only this set, or all sets of this table, with its rows; may be repeated");
  CLI::Option* rows = command.add_flag("--rows", flags->rows, "every row of every set");
  CLI::Option* paper = command.add_flag(
      "--paper", flags->paper,
      "instead run the experiments of the DIP paper (minutes), beside what it says about them");
  paper->excludes(published)->excludes(set)->excludes(rows);
  command
      .add_option("--experiment", flags->experiments,
                  "with --paper: only this one of configs/experiments/paper; may be repeated")
      ->needs(paper);
  add_whole(command, "--jobs", flags->jobs, 0, 1024, "threads; 0: all cores");
  flags->output.add(command);
  command.callback([flags] {
    if (flags->paper) {
      run_paper_experiments(*flags);
    } else {
      run_validate(*flags);
    }
  });
}

}  // namespace dipsim::cli
