// SPDX-License-Identifier: Apache-2.0
#include "cli/validation_tables.hpp"

#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>

namespace dipsim::cli {

namespace {

constexpr int kPercentDecimals = 2;

Cell percent_or_unknown(std::optional<double> percent) {
  return percent ? number_cell(*percent, kPercentDecimals) : unknown_cell();
}

Cell count_cell(std::size_t count) { return whole_cell(static_cast<std::int64_t>(count)); }

/// Errors of a set without rows are unknown.
Cell error_cell(const ErrorSummary& summary, double percent) {
  return summary.rows > 0 ? number_cell(percent, kPercentDecimals) : unknown_cell();
}

Cell met_cell(const ValidationSet& set, const ErrorSummary& summary) {
  return set.bar_percent && summary.rows > 0 ? yes_no_cell(summary.mape_percent <= *set.bar_percent)
                                             : unknown_cell();
}

std::string text_of(const Validation& validation, bool rows) {
  std::string out = render_table(summary_table(validation), Format::Table);
  const Table others = others_table(validation);
  if (!others.rows.empty()) {
    out += "\nOther predictors on the same rows:\n\n" + render_table(others, Format::Table);
  }
  for (const std::string& name : validation.missing) {
    out += fmt::format("{}table {}.csv not found: give --published DIR\n",
                       name == validation.missing.front() ? "\n" : "", name);
  }
  if (!rows) {
    return out;
  }
  for (const ValidationSet& set : validation.sets) {
    out += fmt::format("\n{}: {}, {} in {} ({}; {})\n\n", set.name, set.title, set.quantity,
                       set.unit, set.source, table_name(set));
    out += render_table(rows_table(set), Format::Table);
    for (const std::string& note : set.notes) {
      out += "note: " + note + '\n';
    }
    for (const UnusableRow& row : set.unusable) {
      out += fmt::format("line {}: {}\n", row.line, row.reason);
    }
  }
  return out;
}

/// The rows of all sets, with the set in front.
std::string rows_csv(const Validation& validation) {
  Table all{.name = "rows", .columns = {{"set", "set", ""}}, .rows = {}};
  const std::vector<Column> columns = rows_table({}).columns;
  all.columns.insert(all.columns.end(), columns.begin(), columns.end());
  for (const ValidationSet& set : validation.sets) {
    for (std::vector<Cell>& row : rows_table(set).rows) {
      row.insert(row.begin(), text_cell(set.name));
      all.rows.push_back(std::move(row));
    }
  }
  return render_table(all, Format::Csv);
}

}  // namespace

Cell value_cell(double value) {
  constexpr int kDigits = 4;
  constexpr int kMostDecimals = 6;
  const double magnitude = std::abs(value) > 0.0 ? std::floor(std::log10(std::abs(value))) : 0.0;
  return number_cell(value,
                     std::clamp(kDigits - 1 - static_cast<int>(magnitude), 0, kMostDecimals));
}

std::string table_name(const ValidationSet& set) {
  return std::filesystem::path(set.table).filename().string();
}

Table summary_table(const Validation& validation) {
  Table table{.name = "sets",
              .columns = {{"name", "set", ""},
                          {"quantity", "quantity", ""},
                          {"row_count", "rows", ""},
                          {"fitted_count", "fitted", ""},
                          {"unusable_count", "unusable", ""},
                          {"mape_percent", "mean error", "%"},
                          {"max_percent", "largest", "%"},
                          {"bias_percent", "bias", "%"},
                          {"constant_mape_percent", "one rate", "%"},
                          {"claim_percent", "peer", "%"},
                          {"bar_percent", "bar", "%"},
                          {"met", "kept", ""}},
              .rows = {}};
  for (const ValidationSet& set : validation.sets) {
    const ErrorSummary summary = summarize(set);
    table.rows.push_back(
        {text_cell(set.name), text_cell(set.quantity), count_cell(summary.rows),
         count_cell(set.fitted.size()), count_cell(set.unusable.size()),
         error_cell(summary, summary.mape_percent), error_cell(summary, summary.max_percent),
         error_cell(summary, summary.bias_percent),
         percent_or_unknown(summary.constant_mape_percent), percent_or_unknown(set.claim_percent),
         percent_or_unknown(set.bar_percent), met_cell(set, summary)});
  }
  return table;
}

Table others_table(const Validation& validation) {
  Table table{.name = "others",
              .columns = {{"name", "set", ""},
                          {"predictor", "predictor", ""},
                          {"mape_percent", "mean error", "%"},
                          {"dipsim_mape_percent", "dipsim", "%"}},
              .rows = {}};
  for (const ValidationSet& set : validation.sets) {
    const ErrorSummary summary = summarize(set);
    for (std::size_t i = 0; i < summary.others_mape_percent.size(); ++i) {
      table.rows.push_back({text_cell(set.name), text_cell(set.others[i].name),
                            number_cell(summary.others_mape_percent[i], kPercentDecimals),
                            error_cell(summary, summary.mape_percent)});
    }
  }
  return table;
}

Table rows_table(const ValidationSet& set) {
  Table table{.name = "rows",
              .columns = {{"label", "row", ""},
                          {"line", "line", ""},
                          {"predicted", "predicted", set.unit},
                          {"measured", "measured", set.unit},
                          {"error_percent", "error", "%"},
                          {"note", "note", ""}},
              .rows = {}};
  for (const ValidationRow& row : set.rows) {
    table.rows.push_back({text_cell(row.label), whole_cell(row.line), value_cell(row.predicted),
                          value_cell(row.measured),
                          number_cell(100.0 * row.error(), kPercentDecimals), text_cell(row.note)});
  }
  return table;
}

std::string render_validation(const Validation& validation, bool rows, Format format) {
  switch (format) {
    case Format::Json:
      return validation_json(validation);
    case Format::Csv:
      return rows ? rows_csv(validation) : render_table(summary_table(validation), Format::Csv);
    case Format::Markdown:
      return validation_page(validation);
    case Format::Table:
      break;
  }
  return text_of(validation, rows);
}

}  // namespace dipsim::cli
