// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/core/files.hpp"
#include "sim/graph/results.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace dipsim::cli {

/// Text of the plan file of schedule `index`: its sample, which is this iteration of the trace.
std::string plan_text(const Comparison& comparison, std::size_t index, std::size_t iteration,
                      const std::optional<Cluster>& cluster);

/// The folder behind --out: all files of design.md's list appear together at commit().
class OutputFolder {
 public:
  /// Throws Input or Environment as StagedFolder does.
  explicit OutputFolder(const std::string& path);

  /// Report, result.json, pictures, and a replayable plan per schedule.
  void add_comparison(const Comparison& comparison, const std::optional<Cluster>& cluster) const;

  /// run.json: everything that differs from run to run.
  void add_run_facts(std::chrono::steady_clock::duration wall, std::size_t jobs) const;

  void commit() { folder_.commit(); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  StagedFolder folder_;
};

}  // namespace dipsim::cli
