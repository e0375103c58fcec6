// SPDX-License-Identifier: Apache-2.0
#include "report/json.hpp"

#include "report/figures.hpp"
#include "report/findings.hpp"
#include "sim/core/error.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

using nlohmann::ordered_json;

/// An object of texts; texts of one name are joined.
ordered_json object_of(const std::vector<Note>& notes) {
  ordered_json object = ordered_json::object();
  for (const Note& note : notes) {
    ordered_json& value = object[note.name];
    value = value.is_null() ? note.text : value.get<std::string>() + "; " + note.text;
  }
  return object;
}

ordered_json spread(const Spread& value) {
  return {{"mean", value.mean}, {"min", value.min}, {"max", value.max}};
}

ordered_json idle_by_cause(const IdleByCause& idle) {
  ordered_json object = ordered_json::object();
  for (const IdleCause& cause : kIdleCauses) {
    object[cause.key] = static_cast<double>((idle.*cause.member).count()) / 1e6;
  }
  return object;
}

/// Adds the figures of a schedule; `times` says how a spread is written.
template <class Times>
void add_figures(ordered_json& out, const ScheduleResult& schedule, const ScheduleSummary& summary,
                 Times times) {
  out["name"] = schedule.name;
  out["recompute"] = schedule.recompute;
  out["notes"] = object_of(schedule.notes);
  out["iteration_time_ms"] = times(summary.iteration_time_ms);
  out["makespan_ms"] = times(summary.makespan_ms);
  out["throughput_ratio"] = summary.throughput_ratio;
  out["bubble_ratio"] = summary.bubble_ratio;
  out["bubble_overhead"] = summary.bubble_overhead;
  out["mfu"] = summary.mfu;
  out["peak_memory_gib"] = summary.peak_memory_gib;
  out["fits"] = summary.fits;
  out["lower_bound_ms"] = summary.lower_bound_ms;
  out["gap_to_bound"] = summary.gap_to_bound;
  out["idle_by_cause_ms"] = idle_by_cause(summary.idle);
}

std::string dump(const ordered_json& document) {
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string result_json(const Comparison& comparison) {
  const std::vector<ScheduleSummary> summaries = summarize_all(comparison);
  const std::vector<std::size_t> order = ranking(summaries);
  ordered_json document;
  document["schema_version"] = kResultSchemaVersion;
  document["title"] = comparison.title;
  document["inputs"] = object_of(comparison.inputs);
  document["warnings"] = findings(comparison).warnings;
  document["iterations"] =
      comparison.schedules.empty() ? 0 : comparison.schedules.front().iterations.size();
  document["requested_iterations"] = comparison.requested_iterations;
  document["sample_iteration"] = comparison.sample_iteration;
  document["winner"] = nullptr;
  if (!order.empty()) {
    document["winner"] = comparison.schedules[order.front()].name;
  }
  document["work_bound_ms"] = work_bound_ms(comparison);
  document["schedules"] = ordered_json::array();
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    ordered_json schedule;
    add_figures(schedule, comparison.schedules[i], summaries[i], spread);
    document["schedules"].push_back(std::move(schedule));
  }
  return dump(document);
}

std::string simulation_json(const Comparison& comparison) {
  DIPSIM_CHECK(comparison.schedules.size() == 1, "a simulation is one schedule");
  DIPSIM_CHECK(comparison.schedules.front().iterations.size() == 1,
               "a simulation is one iteration");
  ordered_json document;
  document["schema_version"] = kResultSchemaVersion;
  document["inputs"] = object_of(comparison.inputs);
  document["warnings"] = findings(comparison).warnings;
  add_figures(document, comparison.schedules.front(), summarize(comparison, 0),
              [](const Spread& value) { return value.mean; });
  return dump(document);
}

}  // namespace dipsim
