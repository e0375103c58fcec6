// SPDX-License-Identifier: Apache-2.0
#include "report/json.hpp"

#include "report/figures.hpp"
#include "report/findings.hpp"
#include "report/memory_words.hpp"
#include "report/stragglers.hpp"
#include "sim/core/error.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
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

/// Per part a list with a value per rank.
ordered_json contents_object(const std::vector<const MemoryContents*>& ranks) {
  ordered_json object = ordered_json::object();
  for (const MemoryPart& part : kMemoryParts) {
    ordered_json& list = object[part.key] = ordered_json::array();
    for (const MemoryContents* rank : ranks) {
      list.push_back(rank == nullptr ? ordered_json(nullptr)
                                     : ordered_json(to_gib(rank->*part.member)));
    }
  }
  return object;
}

/// What each rank holds at its peak over all iterations.
ordered_json peak_contents(const ScheduleResult& schedule) {
  std::vector<const MemoryContents*> ranks;
  if (!schedule.iterations.empty()) {
    for (std::size_t r = 0; r < schedule.iterations.front().peak_contents.size(); ++r) {
      ranks.push_back(&schedule.iterations[peak_iteration(schedule, r)].peak_contents[r]);
    }
  }
  return contents_object(ranks);
}

/// What each rank holds at its peak in each phase of the sample iteration.
ordered_json memory_phases(const ScheduleResult& schedule) {
  const auto phases = all_phases(schedule);
  ordered_json object = ordered_json::object();
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    std::vector<const MemoryContents*> ranks;
    for (const std::optional<MemoryContents>& rank : phases[phase]) {
      ranks.push_back(rank ? &*rank : nullptr);
    }
    object[kMemoryPhases[phase]] = contents_object(ranks);
  }
  return object;
}

ordered_json straggler(const ScheduleResult& schedule) {
  const std::optional<StragglerSummary> summary = straggler_summary(schedule);
  if (!summary) {
    return nullptr;
  }
  ordered_json parts = ordered_json::object();
  for (std::size_t i = 0; i < kLagCauses.size(); ++i) {
    parts[kLagCauses[i].key] = summary->parts_ms[i];
  }
  return {{"replica", summary->replica},
          {"times_last", summary->times_last},
          {"lag_ms", summary->lag_ms},
          {"lag_by_cause_ms", std::move(parts)}};
}

ordered_json slow_rank_list(const ScheduleResult& schedule) {
  ordered_json list = ordered_json::array();
  for (const SlowRank& rank : slow_ranks(schedule)) {
    list.push_back({{"rank", rank.rank},
                    {"replica", rank.replica},
                    {"first_gpu", rank.first_gpu},
                    {"last_gpu", rank.last_gpu},
                    {"speed", rank.speed}});
  }
  return list;
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
  out["peak_memory_by_contents_gib"] = peak_contents(schedule);
  out["sample_memory_by_phase_gib"] = memory_phases(schedule);
  out["fits"] = summary.fits;
  out["lower_bound_ms"] = summary.lower_bound_ms;
  out["gap_to_bound"] = summary.gap_to_bound;
  out["idle_by_cause_ms"] = idle_by_cause(summary.idle);
  out["straggler"] = straggler(schedule);
  out["slow_ranks"] = slow_rank_list(schedule);
  out["slow_ranks_cost_ms"] = slow_ranks_cost_ms(schedule);
  const auto ms = [](Duration d) { return static_cast<double>(d.count()) / 1e6; };
  out["contention_ms"] = {{"passes", ms(summary.lost.passes)}, {"flows", ms(summary.lost.flows)}};
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
