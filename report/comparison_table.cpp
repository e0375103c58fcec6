// SPDX-License-Identifier: Apache-2.0
#include "report/comparison_table.hpp"

#include "report/figures.hpp"
#include "report/findings.hpp"
#include "report/json.hpp"
#include "report/summary.hpp"
#include "report/text.hpp"

#include <cstddef>
#include <vector>

namespace dipsim {

namespace {

std::vector<Column> columns() {
  return {{"winner", "", ""},
          {"schedule", "schedule", ""},
          {"iteration_time_ms", "iteration", "ms"},
          {"iteration_time_min_ms", "min", "ms"},
          {"iteration_time_max_ms", "max", "ms"},
          {"throughput_ratio", "vs first", "×"},
          {"bubble_ratio", "bubble", "%"},
          {"mfu", "MFU", "%"},
          {"peak_memory_gib", "peak", "GiB"},
          {"memory_limit_gib", "limit", "GiB"},
          {"recompute", "recompute", ""},
          {"gap_to_bound", "above bound", "%"},
          {"fits", "fits", ""}};
}

/// Zero stands for "unknown" in these figures.
Cell known(double value, Cell cell) { return value > 0.0 ? std::move(cell) : unknown_cell(); }

std::vector<Cell> row(const ScheduleResult& schedule, const ScheduleSummary& summary, bool wins,
                      int decimals) {
  const FullestRank fullest = fullest_rank(schedule, summary);
  return {Cell{wins, wins ? "*" : ""},
          text_cell(schedule.name),
          number_cell(summary.iteration_time_ms.mean, decimals),
          number_cell(summary.iteration_time_ms.min, decimals),
          number_cell(summary.iteration_time_ms.max, decimals),
          number_cell(summary.throughput_ratio, 3),
          percent_cell(summary.bubble_ratio),
          known(summary.mfu, percent_cell(summary.mfu)),
          number_cell(fullest.peak_gib, gib_decimals(fullest.peak_gib)),
          known(fullest.limit_gib, number_cell(fullest.limit_gib, gib_decimals(fullest.limit_gib))),
          text_cell(schedule.recompute),
          known(summary.lower_bound_ms, percent_cell(summary.gap_to_bound)),
          yes_no_cell(summary.fits)};
}

std::string render_text(const Comparison& comparison) {
  const Findings found = findings(comparison);
  std::string out = one_line(comparison.title) + "\n\n";
  out += render_table(comparison_table(comparison), Format::Table) + '\n';
  out += one_line(found.headline) + '\n';
  for (const std::string& reason : found.reasons) {
    out += "  " + one_line(reason) + '\n';
  }
  if (!found.potential.empty()) {
    out += one_line(found.potential) + '\n';
  }
  for (const std::string& warning : found.warnings) {
    out += "warning: " + one_line(warning) + '\n';
  }
  return out;
}

}  // namespace

Table comparison_table(const Comparison& comparison) {
  const std::vector<ScheduleSummary> summaries = summarize_all(comparison);
  const std::vector<std::size_t> order = ranking(summaries);
  Table table{"schedules", columns(), {}};
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    const bool wins = !order.empty() && order.front() == i;
    table.rows.push_back(
        row(comparison.schedules[i], summaries[i], wins, time_decimals(summaries)));
  }
  return table;
}

std::string render_comparison(const Comparison& comparison, Format format) {
  switch (format) {
    case Format::Json:
      return result_json(comparison);
    case Format::Csv:
      return render_table(comparison_table(comparison), Format::Csv);
    case Format::Markdown:
      return summary_markdown(comparison);
    case Format::Table:
      break;
  }
  return render_text(comparison);
}

}  // namespace dipsim
