// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/compare_files.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/graph/engine_options.hpp"
#include "sim/graph/results.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dipsim::cli {

/// Text of the plan file of schedule `index`: its sample, which is this iteration of the trace.
std::string plan_text(const Comparison& comparison, std::size_t index, std::size_t iteration,
                      const std::optional<Cluster>& cluster, const EngineOptions& engine);

/// The folder behind --out: all its files appear together at commit(), and nothing lies on the disk
/// before.
class OutputFolder {
 public:
  /// Throws Input or Environment, as StagedFolder does, where commit() could not write: hours of
  /// work must not end that way.
  explicit OutputFolder(const std::string& path);

  /// Report, result.json, pictures, and a replayable plan per schedule.
  void add_comparison(const Comparison& comparison, const std::optional<Cluster>& cluster,
                      const EngineOptions& engine);

  /// run.json: everything that differs from run to run.
  void add_run_facts(std::chrono::steady_clock::duration wall, std::size_t jobs);

  void commit() const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<NamedFile> files_;
};

}  // namespace dipsim::cli
