// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output_folder.hpp"
#include "cli/terminal.hpp"
#include "experiment/run_plan.hpp"
#include "experiment/schedule_choice.hpp"
#include "experiment/synthetic_plan.hpp"
#include "report/comparison_table.hpp"
#include "report/json.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/plan_file.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace dipsim::cli {

namespace {

constexpr double kBytesPerMib = 1024.0 * 1024.0;

struct SimulateFlags {
  std::string plan;
  std::int64_t ranks = 4;
  std::int64_t microbatches = 8;
  std::int64_t chunks = 1;
  bool chunks_given = false;
  std::int64_t replicas = 1;
  std::vector<double> forward_us = {1000.0};
  std::vector<double> backward_input_us = {1000.0};
  std::vector<double> backward_weight_us = {1000.0};
  double p2p_us = 0.0;
  double p2p_latency_us = 0.0;
  double activation_mib = 1.0;
  double activation_for_weight_mib = 0.5;
  double memory_limit_mib = kMaxBytes / kBytesPerMib;
  std::string schedule = "1f1b";
  EngineFlags engine;
  OutputFlags output;
  std::string out;
};

constexpr std::array<const char*, 13> kSyntheticFlags = {"--ranks",
                                                         "--microbatches",
                                                         "--chunks",
                                                         "--replicas",
                                                         "--forward-us",
                                                         "--backward-input-us",
                                                         "--backward-weight-us",
                                                         "--p2p-us",
                                                         "--p2p-latency-us",
                                                         "--activation-mib",
                                                         "--activation-for-weight-mib",
                                                         "--memory-limit-mib",
                                                         "--schedule"};

std::vector<Duration> durations(const std::vector<double>& us, std::string_view flag) {
  std::vector<Duration> out;
  out.reserve(us.size());
  for (const double value : us) {
    out.push_back(round_to_duration(value * 1e-6, flag));
  }
  return out;
}

PlanFile synthetic_plan_of(const SimulateFlags& flags) {
  ScheduleChoice choice = parse_schedule(flags.schedule, "--schedule");
  if (choice.options.chunks_per_rank > 0 && flags.chunks_given) {
    fail_input("--chunks", "is given twice: as a flag and in --schedule");
  }
  return synthetic_plan(
      {.ranks = static_cast<int>(flags.ranks),
       .microbatches = static_cast<int>(flags.microbatches),
       .chunks = static_cast<int>(flags.chunks),
       .replicas = static_cast<int>(flags.replicas),
       .forward = durations(flags.forward_us, "--forward-us"),
       .backward_input = durations(flags.backward_input_us, "--backward-input-us"),
       .backward_weight = durations(flags.backward_weight_us, "--backward-weight-us"),
       .p2p_occupied = round_to_duration(flags.p2p_us * 1e-6, "--p2p-us"),
       .p2p_latency = round_to_duration(flags.p2p_latency_us * 1e-6, "--p2p-latency-us"),
       .activation = round_to_bytes(flags.activation_mib * kBytesPerMib, "--activation-mib"),
       .activation_for_weight = round_to_bytes(flags.activation_for_weight_mib * kBytesPerMib,
                                               "--activation-for-weight-mib"),
       .memory_limit = round_to_bytes(flags.memory_limit_mib * kBytesPerMib, "--memory-limit-mib")},
      std::move(choice));
}

PlanFile subject_of(const CLI::App& app, const SimulateFlags& flags) {
  if (flags.plan.empty()) {
    return synthetic_plan_of(flags);
  }
  for (const char* flag : kSyntheticFlags) {
    if (app.count(flag) > 0) {
      fail_input(flag, "describes a synthetic pipeline; a plan file has its own");
    }
  }
  return read_plan(flags.plan);
}

void run_simulate(const CLI::App& app, const SimulateFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  PlanFile plan = subject_of(app, flags);
  EngineOptions engine = plan.engine;
  flags.engine.apply(app, engine);
  const std::optional<Cluster> cluster = plan.cluster;
  const Comparison comparison = run_plan(std::move(plan), engine);
  if (!flags.out.empty()) {
    OutputFolder folder(flags.out);
    folder.add_comparison(comparison, cluster, engine);
    folder.add_run_facts(std::chrono::steady_clock::now() - start, 1);
    folder.commit();
  }
  const Format format = flags.output.parsed();
  print_result(format == Format::Json ? simulation_json(comparison)
                                      : render_comparison(comparison, format));
}

}  // namespace

void add_simulate(CLI::App& app) {
  const auto flags = std::make_shared<SimulateFlags>();
  CLI::App& command = *app.add_subcommand(
      "simulate", "Run one plan file, or a synthetic pipeline given by flags, and report");
  command.add_option("plan", flags->plan, "plan file, as compare and plan write it");
  const std::string group = "Synthetic pipeline (each time: one value, or one per stage)";
  add_whole(command, "--ranks", flags->ranks, 1, 100'000, "pipeline ranks")->group(group);
  add_whole(command, "--microbatches", flags->microbatches, 1, 1'000'000, "per replica")
      ->group(group);
  add_whole(command, "--chunks", flags->chunks, 1, 1'000, "model chunks per rank")->group(group);
  add_whole(command, "--replicas", flags->replicas, 1, 100'000, "copies of the pipeline")
      ->group(group);
  constexpr double kLongestUs = 1e10;
  add_numbers(command, "--forward-us", flags->forward_us, 0.0, kLongestUs, "forward pass")
      ->group(group);
  add_numbers(command, "--backward-input-us", flags->backward_input_us, 0.0, kLongestUs,
              "backward for inputs")
      ->group(group);
  add_numbers(command, "--backward-weight-us", flags->backward_weight_us, 0.0, kLongestUs,
              "backward for weights")
      ->group(group);
  add_number(command, "--p2p-us", flags->p2p_us, 0.0, kLongestUs,
             "time for which a transfer occupies its link")
      ->group(group);
  add_number(command, "--p2p-latency-us", flags->p2p_latency_us, 0.0, kLongestUs,
             "further time until it arrives")
      ->group(group);
  constexpr double kMostMib = kMaxBytes / kBytesPerMib;
  add_number(command, "--activation-mib", flags->activation_mib, 0.0, kMostMib,
             "held per microbatch and stage from F to B or I")
      ->group(group);
  add_number(command, "--activation-for-weight-mib", flags->activation_for_weight_mib, 0.0,
             kMostMib, "held on from I to W")
      ->group(group);
  add_number(command, "--memory-limit-mib", flags->memory_limit_mib, 0.0, kMostMib,
             "that a rank may hold")
      ->default_str("out of reach")
      ->group(group);
  command.add_option("--schedule", flags->schedule, "dipsim list schedules")
      ->capture_default_str()
      ->group(group);
  flags->engine.add(command, "the plan's own; off without a cluster");
  command.add_option("--out", flags->out, "folder for report.html, timeline, trace and plan");
  flags->output.add(command);
  command.callback([&command, flags] {
    flags->chunks_given = command.count("--chunks") > 0;
    run_simulate(command, *flags);
  });
}

}  // namespace dipsim::cli
