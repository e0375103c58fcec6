// SPDX-License-Identifier: Apache-2.0
// Options that several subcommands share.
#pragma once

#include "experiment/spec.hpp"
#include "report/table.hpp"
#include "sim/engine/engine.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
class Option;
}  // namespace CLI

namespace dipsim::cli {

/// True when this command has the option and the user gave it.
bool given(const CLI::App& app, const std::string& option);

/// A finite number in [low, high]: nan, inf, 1e400 and text are refused with the range.
CLI::Option* add_number(CLI::App& app, const std::string& names, double& value, double low,
                        double high, const std::string& help);
/// The same, one or more separated by commas.
CLI::Option* add_numbers(CLI::App& app, const std::string& names, std::vector<double>& values,
                         double low, double high, const std::string& help);
/// A whole number in [low, high].
CLI::Option* add_whole(CLI::App& app, const std::string& names, std::int64_t& value,
                       std::int64_t low, std::int64_t high, const std::string& help);

/// --format, --quiet
struct OutputFlags {
  std::string format = "table";
  bool quiet = false;

  void add(CLI::App& app);

  [[nodiscard]] Format parsed() const { return format_of(format); }
};

/// --lanes --send --host-issue-us --jitter --jitter-seed --contention
struct EngineFlags {
  std::string lanes = "pair-direction";
  std::string send = "eager";
  double host_issue_us = 0.0;
  double jitter = 0.0;
  std::int64_t jitter_seed = 0;
  std::string contention;

  /// `contention_default`: what holds where nobody says, for the help.
  void add(CLI::App& app, const std::string& contention_default);
  [[nodiscard]] EngineOptions options() const;
  /// Replaces in `engine` what the user gave.
  void apply(const CLI::App& app, EngineOptions& engine) const;
};

/// What ExperimentFlags::add_workload() adds.
inline constexpr std::array<const char*, 14> kWorkloadFlags = {"--model",
                                                               "--cluster",
                                                               "--trace",
                                                               "--profile",
                                                               "--microbatches",
                                                               "--seed",
                                                               "--compose",
                                                               "--tp",
                                                               "--pp",
                                                               "--dp",
                                                               "--cp",
                                                               "--ep",
                                                               "--usable-memory-fraction",
                                                               "--slow"};

/// The experiment: a file, or flags, or a file with some of its values replaced by flags.
struct ExperimentFlags {
  std::string file;
  std::string model;
  std::string cluster;
  std::string trace;
  std::string profile;
  std::string schedules;
  bool ablation = false;
  std::int64_t iterations = 0;
  std::int64_t microbatches = 0;
  std::int64_t seed = 0;
  bool compose = false;
  std::int64_t tp = 0;
  std::int64_t pp = 0;
  std::int64_t dp = 0;
  std::int64_t cp = 0;
  std::int64_t ep = 0;
  double usable_memory_fraction = 0.0;
  std::vector<std::string> slow;
  EngineFlags engine;

  /// Everything. `several`: --schedules LIST and --iterations, else --schedule NAME.
  void add(CLI::App& app, bool several);
  /// Only what is planned for: model, cluster, trace and how they are spread.
  void add_workload(CLI::App& app);
  /// Throws Input as read_experiment and check do.
  [[nodiscard]] ExperimentSpec spec(const CLI::App& app) const;
};

}  // namespace dipsim::cli
