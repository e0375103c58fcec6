// SPDX-License-Identifier: Apache-2.0
#include "experiment/run_plan.hpp"

#include "experiment/single.hpp"
#include "experiment/spec.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// The provenance of the plan, with the engine options that it was run with.
std::vector<Note> inputs_of(const PlanFile& plan, const EngineOptions& engine) {
  std::vector<Note> inputs = plan.provenance;
  for (const Note& note : engine_notes(engine)) {
    const auto known = std::ranges::find(inputs, note.name, &Note::name);
    if (known == inputs.end()) {
      inputs.push_back(note);
    } else {
      known->text = note.text;
    }
  }
  return inputs;
}

}  // namespace

Comparison run_plan(PlanFile plan, const EngineOptions& engine) {
  PlanRun run{.graph = std::move(plan.graph), .schedule = std::move(plan.schedule), .timeline = {}};
  const Machine machine{.engine = engine, .cluster = plan.cluster ? &*plan.cluster : nullptr};
  run.timeline = machine.run(run.graph, run.schedule);
  IterationResult measured = measure(run, machine);
  std::vector<Note> notes = run.graph.placement.notes;
  notes.push_back(
      {"peak pairs in flight per rank",
       fmt::format("{}", fmt::join(peak_in_flight(run.graph, run.timeline.spans), ", "))});
  for (Note& note : offload_notes(run.graph, run.schedule)) {
    notes.push_back(std::move(note));
  }
  std::string recompute = recompute_of(run.graph, run.schedule);
  Comparison comparison{.title = plan.title,
                        .inputs = inputs_of(plan, engine),
                        .loads = {},
                        .schedules = {},
                        .warnings = {},
                        .sample_iteration = 0,
                        .requested_iterations = 1};
  comparison.schedules.push_back({.name = plan.name,
                                  .recompute = std::move(recompute),
                                  .notes = std::move(notes),
                                  .iterations = {std::move(measured)},
                                  .sample = std::move(run)});
  return comparison;
}

}  // namespace dipsim
