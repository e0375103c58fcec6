// SPDX-License-Identifier: Apache-2.0
// docs/validation.md.
#include "cli/validation_tables.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace dipsim::cli {

namespace {

/// Sets with more rows show the worst ones only: their tables belong to those who measured them.
constexpr std::size_t kMostRows = 80;
constexpr std::size_t kWorstRows = 10;

constexpr std::string_view kIntroduction =
    R"(# Predictions against measurements

Written by `dipsim validate --published DIR --format markdown`, DIR being a folder with all the tables named below; do
not edit. The small tables are shipped in [validate/published](../validate/published). `dipsim validate` alone holds
dipsim against these; the larger ones belong to those who measured them, and their public source stands with each set.
A table is a CSV file whose columns are named in its first line.

Contents: [how to read this](#how-to-read-this) · [summary](#summary) · [sets](#sets)

## How to read this

* **error** = predicted / measured − 1. **mean error** is the mean of its size over the rows of the set, **bias** its
  mean with the sign, **largest** the largest size.
* **rows** counts nothing that any number of dipsim was fitted to: those rows are **fitted**, and count nowhere else.
  **unusable** rows leave open what ran; the reasons are given.
* **one rate** is the mean error of the simplest predictor, work divided by one rate, the rate being the median of these
  very rows. A prediction that is not clearly better than this shows nothing.
* **peer** is the mean error that another simulator claims on these rows, **bar** what dipsim is held to, **kept**
  whether it is. Misses stay in the table.
* Tables of peers and papers round: an error below the last digit of a measurement means nothing.
)";

Table brief_rows(const ValidationSet& set, const std::vector<const ValidationRow*>& rows) {
  const bool notes =
      std::ranges::any_of(rows, [](const ValidationRow* row) { return !row->note.empty(); });
  Table table{.name = "rows",
              .columns = {{"label", "row", ""},
                          {"measured", "measured", set.unit},
                          {"predicted", "predicted", set.unit},
                          {"error_percent", "error", "%"}},
              .rows = {}};
  if (notes) {
    table.columns.push_back({"note", "note", ""});
  }
  table.rows.reserve(rows.size());
  for (const ValidationRow* row : rows) {
    table.rows.push_back({text_cell(row->label), value_cell(row->measured),
                          value_cell(row->predicted), number_cell(100.0 * row->error(), 1)});
    if (notes) {
      table.rows.back().push_back(text_cell(row->note));
    }
  }
  return table;
}

std::vector<const ValidationRow*> all_rows(const ValidationSet& set) {
  std::vector<const ValidationRow*> rows;
  rows.reserve(set.rows.size());
  for (const ValidationRow& row : set.rows) {
    rows.push_back(&row);
  }
  return rows;
}

/// Largest error first, the first among equals.
std::vector<const ValidationRow*> by_error(const ValidationSet& set) {
  std::vector<const ValidationRow*> rows = all_rows(set);
  std::ranges::sort(rows, [](const ValidationRow* a, const ValidationRow* b) {
    const double first = std::abs(a->error());
    const double second = std::abs(b->error());
    return first > second || (first == second && a < b);  // rows of one vector
  });
  return rows;
}

/// "half of the rows are within 1.2 %, …".
std::string quantiles(const std::vector<const ValidationRow*>& worst_first) {
  constexpr std::array<int, 5> kShares = {50, 75, 90, 95, 99};
  std::string out;
  for (const int share : kShares) {
    // The smallest error that so many percent of the rows do not exceed.
    const std::size_t count = worst_first.size();
    const std::size_t within = (count * static_cast<std::size_t>(share) + 99) / 100;
    const double error = std::abs(worst_first[count - std::max<std::size_t>(within, 1)]->error());
    out += fmt::format("{}{} % of the rows within {} %", out.empty() ? "" : ", ", share,
                       percent(error, 1));
  }
  return out;
}

std::string rows_of(const ValidationSet& set) {
  std::vector<const ValidationRow*> rows = by_error(set);
  if (rows.empty()) {
    return "";
  }
  if (rows.size() > kMostRows) {
    const std::string shares = quantiles(rows);
    rows.resize(kWorstRows);
    return fmt::format("{}. The {} worst:\n\n{}", shares, kWorstRows,
                       render_table(brief_rows(set, rows), Format::Markdown));
  }
  return render_table(brief_rows(set, all_rows(set)), Format::Markdown);
}

/// "36 rows count, 12 more were fitted to (mean error there 0.7 %), 24 are unusable: …".
std::string split_of(const ValidationSet& set) {
  std::string out = fmt::format("{} rows count", set.rows.size());
  if (!set.fitted.empty()) {
    double sum = 0.0;
    for (const ValidationRow& row : set.fitted) {
      sum += std::abs(row.error());
    }
    out += fmt::format(", {} others were fitted to (mean error there {} %)", set.fitted.size(),
                       percent(sum / static_cast<double>(set.fitted.size()), 2));
  }
  std::map<std::string, std::size_t> reasons;
  for (const UnusableRow& row : set.unusable) {
    ++reasons[row.reason];
  }
  for (const auto& [reason, count] : reasons) {
    out += fmt::format("{}{} × {}", &reason == &reasons.begin()->first ? "; unusable: " : ", ",
                       count, escape_markdown(reason));
  }
  return out + ".";
}

std::string section_of(const ValidationSet& set) {
  const ErrorSummary summary = summarize(set);
  std::string out =
      fmt::format("### {}\n\n{}: {} in {}. Source: {}. Table: `{}`.\n\n", set.name,
                  escape_markdown(set.title), escape_markdown(set.quantity),
                  escape_markdown(set.unit), escape_markdown(set.source), table_name(set));
  out += split_of(set) + "\n\n";
  std::string others;
  for (std::size_t i = 0; i < summary.others_mape_percent.size(); ++i) {
    others +=
        fmt::format("* mean error of \"{}\" on the same rows: {} %\n",
                    escape_markdown(set.others[i].name), fixed(summary.others_mape_percent[i], 2));
  }
  if (set.claim_percent) {
    others += fmt::format("* {}: {} %\n", escape_markdown(set.claim_source),
                          fixed(*set.claim_percent, 2));
  }
  for (const std::string& note : set.notes) {
    others += "* " + escape_markdown(note) + '\n';
  }
  out += others.empty() ? "" : others + '\n';
  out += rows_of(set);
  out.erase(out.find_last_not_of('\n') + 1);
  return out + '\n';
}

}  // namespace

std::string validation_page(const Validation& validation) {
  std::string out(kIntroduction);
  out += "\n## Summary\n\n" + render_table(summary_table(validation), Format::Markdown);
  for (const std::string& name : validation.missing) {
    out += fmt::format("{}Table {}.csv was not found.\n",
                       name == validation.missing.front() ? "\n" : "", escape_markdown(name));
  }
  out += "\n## Sets\n";
  for (const ValidationSet& set : validation.sets) {
    out += '\n' + section_of(set);
  }
  return out;
}

}  // namespace dipsim::cli
