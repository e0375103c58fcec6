// SPDX-License-Identifier: Apache-2.0
// A plan as a file: complete in itself, so that simulate and replay need neither the model nor the
// dataset. docs/config.md describes the format.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/core/json.hpp"
#include "sim/graph/engine_options.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

inline constexpr int kPlanSchemaVersion = 1;

struct PlanFile {
  std::string name;                ///< of the scheduling method
  std::string title;               ///< what was planned, for pictures
  std::vector<Note> provenance;    ///< from what it was computed
  std::optional<Cluster> cluster;  ///< none for a synthetic pipeline
  EngineOptions engine;            ///< how it is run unless the user says otherwise
  TaskGraph graph;
  Schedule schedule;
};

/// The text of the file; equal plans give equal bytes.
std::string write_plan(const PlanFile& plan);

/// Throws Input, naming the place, on anything that write_plan would not have written: unknown
/// columns, ids out of range, an order that misses a pass.
PlanFile read_plan(const JsonValue& root);
PlanFile read_plan(const std::filesystem::path& path);

}  // namespace dipsim
