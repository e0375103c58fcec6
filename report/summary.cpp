// SPDX-License-Identifier: Apache-2.0
#include "report/summary.hpp"

#include "report/comparison_table.hpp"
#include "report/csv.hpp"
#include "report/definitions.hpp"
#include "report/figures.hpp"
#include "report/findings.hpp"
#include "report/memory_words.hpp"
#include "report/table.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <span>

namespace dipsim {

namespace {

std::string note_list(const std::vector<Note>& notes) {
  std::string out;
  for (const Note& note : notes) {
    out += fmt::format("- {}: {}\n", escape_markdown(note.name), escape_markdown(note.text));
  }
  return out;
}

std::string definition_list(std::span<const Definition> definitions) {
  std::string out;
  for (const Definition& definition : definitions) {
    out += fmt::format("- **{}**: {}\n", escape_markdown(definition.name),
                       escape_markdown(definition.meaning));
  }
  return out;
}

/// Of each schedule the fullest rank of the sample iteration, phase by phase.
std::string memory_section(const Comparison& comparison) {
  std::string out;
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    const ScheduleResult& schedule = comparison.schedules[i];
    const std::size_t rank = fullest_rank(schedule, summarize(comparison, i)).rank;
    const Table table = phase_table(schedule, rank);
    if (!table.rows.empty()) {
      out += fmt::format("\n### Memory of {}, rank {}, iteration {}\n\n",
                         escape_markdown(schedule.name), rank, comparison.sample_iteration);
      out += render_table(table, Format::Markdown);
    }
  }
  return out;
}

}  // namespace

std::string summary_markdown(const Comparison& comparison) {
  const Findings found = findings(comparison);
  std::string out = fmt::format("# {}\n\n**{}**\n\n", escape_markdown(comparison.title),
                                escape_markdown(found.headline));
  out += render_table(comparison_table(comparison), Format::Markdown) + '\n';
  for (const std::string& warning : found.warnings) {
    out += fmt::format("> Warning: {}\n\n", escape_markdown(warning));
  }
  out += "## Why\n\n";
  for (const std::string& sentence : all_sentences(found)) {
    out += fmt::format("- {}\n", escape_markdown(sentence));
  }
  for (const ScheduleResult& schedule : comparison.schedules) {
    if (!schedule.notes.empty()) {
      out += fmt::format("\n### Plan of {}\n\n{}", escape_markdown(schedule.name),
                         note_list(schedule.notes));
    }
  }
  out += memory_section(comparison);
  out += "\n## Inputs\n\n" + note_list(comparison.inputs);
  out += "\n## What the figures mean\n\n" + definition_list(metric_definitions());
  out += "\n## Columns of iterations.csv\n\n" + definition_list(iteration_columns());
  for (const LoadSeries& load : comparison.loads) {
    out += fmt::format("- **{}**: amount of data in the iteration\n", escape_markdown(load.name));
  }
  return out;
}

}  // namespace dipsim
