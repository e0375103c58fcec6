// SPDX-License-Identifier: Apache-2.0
#include "cli/output_folder.hpp"

#include "report/compare_files.hpp"
#include "sim/core/files.hpp"
#include "sim/core/parallel.hpp"
#include "sim/graph/plan_file.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <ctime>

#include <unistd.h>

namespace dipsim::cli {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace

std::string plan_text(const Comparison& comparison, std::size_t index, std::size_t iteration,
                      const std::optional<Cluster>& cluster, const EngineOptions& engine) {
  const ScheduleResult& schedule = comparison.schedules[index];
  std::vector<Note> provenance = comparison.inputs;
  provenance.push_back({"schedule", schedule.name});
  provenance.push_back({"iteration", std::to_string(iteration)});
  return write_plan({.name = schedule.name,
                     .title = comparison.title,
                     .provenance = std::move(provenance),
                     .cluster = cluster,
                     .engine = engine,
                     .graph = schedule.sample.graph,
                     .schedule = schedule.sample.schedule});
}

OutputFolder::OutputFolder(const std::string& path) : path_(path) {
  const StagedFolder probe(path);
}

void OutputFolder::add_comparison(const Comparison& comparison,
                                  const std::optional<Cluster>& cluster,
                                  const EngineOptions& engine) {
  files_ = comparison_files(comparison);
  const std::vector<std::string> stems = schedule_file_stems(comparison);
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    files_.push_back({"plan_" + stems[i] + ".json",
                      plan_text(comparison, i, comparison.sample_iteration, cluster, engine)});
  }
}

void OutputFolder::add_run_facts(std::chrono::steady_clock::duration wall, std::size_t jobs) {
  const nlohmann::ordered_json facts = {
      {"schema_version", 1},
      {"version", DIPSIM_VERSION},
      {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"host", host_name()},
      {"jobs", jobs == 0 ? hardware_jobs() : jobs},
      {"wall_ms", std::chrono::duration_cast<std::chrono::milliseconds>(wall).count()}};
  files_.push_back({"run.json", facts.dump(2) + "\n"});
}

void OutputFolder::commit() const {
  StagedFolder folder(path_);
  for (const NamedFile& file : files_) {
    folder.add(file.name, file.content);
  }
  folder.commit();
}

}  // namespace dipsim::cli
