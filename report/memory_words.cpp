// SPDX-License-Identifier: Apache-2.0
#include "report/memory_words.hpp"

#include "report/figures.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

namespace dipsim {

namespace {

std::string pass_text(const ScheduleResult& schedule, const PassName& pass) {
  std::string text(name_of(pass.op));
  if (pass.microbatch.valid()) {
    text += fmt::format(" of microbatch {}", pass.microbatch.value);
  }
  const std::vector<std::string>& modules = schedule.sample.graph.module_names;
  if (pass.module.valid() && pass.module.row() < modules.size() && modules.size() > 1) {
    text += fmt::format(" ({})", modules[pass.module.row()]);
  }
  return text;
}

}  // namespace

std::string contents_text(const MemoryContents& contents) {
  const int decimals = gib_decimals(to_gib(contents.total()));
  const std::string nothing = fixed(0.0, decimals);
  std::string text;
  for (const MemoryPart& part : kMemoryParts) {
    const std::string gib = fixed(to_gib(contents.*part.member), decimals);
    if (gib != nothing) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", part.title, gib);
    }
  }
  return text.empty() ? "nothing" : text + " GiB";
}

std::size_t peak_iteration(const ScheduleResult& schedule, std::size_t rank) {
  std::size_t found = 0;
  for (std::size_t i = 1; i < schedule.iterations.size(); ++i) {
    if (schedule.iterations[i].peak_memory[rank] > schedule.iterations[found].peak_memory[rank]) {
      found = i;
    }
  }
  return found;
}

std::string peak_sentence(const ScheduleResult& schedule, const ScheduleSummary& summary) {
  if (schedule.iterations.empty()) {
    return "";
  }
  const FullestRank fullest = fullest_rank(schedule, summary);
  const std::size_t iteration = peak_iteration(schedule, fullest.rank);
  const IterationResult& result = schedule.iterations[iteration];
  if (fullest.rank >= result.peak_contents.size()) {
    return "";
  }
  std::string text = fmt::format("Rank {} of {} peaks at {} GiB", fullest.rank, schedule.name,
                                 fixed(fullest.peak_gib, gib_decimals(fullest.peak_gib)));
  if (const std::optional<PassName>& pass = result.peak_passes[fullest.rank]) {
    text += " during " + pass_text(schedule, *pass);
  }
  if (schedule.iterations.size() > 1) {
    text += fmt::format(" of iteration {}", iteration);
  }
  return text + ": " + contents_text(result.peak_contents[fullest.rank]) + '.';
}

std::array<std::vector<std::optional<MemoryContents>>, kMemoryPhases.size()> all_phases(
    const ScheduleResult& schedule) {
  std::array<std::vector<std::optional<MemoryContents>>, kMemoryPhases.size()> out;
  const PlanRun& run = schedule.sample;
  if (run.timeline.memory.empty()) {
    return out;
  }
  for (std::size_t phase = 0; phase < out.size(); ++phase) {
    out[phase] =
        phase_contents(run.graph, run.schedule, run.timeline, static_cast<MemoryPhase>(phase));
  }
  return out;
}

Table phase_table(const ScheduleResult& schedule, std::size_t rank) {
  Table table{
      .name = "memory", .columns = {{"phase", "phase", ""}, {"peak", "peak", "GiB"}}, .rows = {}};
  for (const MemoryPart& part : kMemoryParts) {
    table.columns.push_back({std::string(part.key), std::string(part.title), "GiB"});
  }
  const auto phases = all_phases(schedule);
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    if (rank >= phases[phase].size() || !phases[phase][rank]) {
      continue;
    }
    const MemoryContents& contents = *phases[phase][rank];
    std::vector<Cell> row = {text_cell(std::string(kMemoryPhases[phase]))};
    const int decimals = gib_decimals(to_gib(contents.total()));
    const auto add = [&](Bytes bytes) { row.push_back(number_cell(to_gib(bytes), decimals)); };
    add(contents.total());
    for (const MemoryPart& part : kMemoryParts) {
      add(contents.*part.member);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace dipsim
