// SPDX-License-Identifier: Apache-2.0
#include "report/table.hpp"

#include "report/json.hpp"
#include "report/text.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace dipsim {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kGap = "  ";

bool is_number(const Cell& cell) {
  return std::holds_alternative<double>(cell.value) ||
         std::holds_alternative<std::int64_t>(cell.value);
}

/// Columns that hold numbers, and nothing but numbers and unknowns, stand on the right.
std::vector<bool> right_aligned(const Table& table) {
  std::vector<bool> right(table.columns.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    const auto numeric = [&](const auto& row) { return is_number(row[i]); };
    const auto fitting = [&](const auto& row) {
      return is_number(row[i]) || std::holds_alternative<std::monostate>(row[i].value);
    };
    right[i] = std::ranges::any_of(table.rows, numeric) && std::ranges::all_of(table.rows, fitting);
  }
  return right;
}

std::string pad(std::string text, std::size_t width, bool right) {
  const std::size_t used = display_width(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return right ? space + text : std::move(text) + space;
}

/// Joins fields that already have their widths, without spaces at the end of the line.
std::string join_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += line.empty() ? "" : kGap;
    line += field;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string render_text(const Table& table) {
  const std::vector<bool> right = right_aligned(table);
  std::vector<std::vector<std::string>> lines(2);
  for (const Column& column : table.columns) {
    lines[0].push_back(one_line(column.title));
    lines[1].push_back(one_line(column.unit));
  }
  if (std::ranges::all_of(lines[1], [](const auto& unit) { return unit.empty(); })) {
    lines.pop_back();
  }
  const std::size_t header_lines = lines.size();
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    for (const Cell& cell : row) {
      line.push_back(one_line(cell.shown));
    }
  }
  std::vector<std::string> rule;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = 1;
    for (const auto& line : lines) {
      width = std::max(width, display_width(line[i]));
    }
    for (auto& line : lines) {
      line[i] = pad(std::move(line[i]), width, right[i]);
    }
    rule.emplace_back(width, '-');
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += join_line(lines[i]);
    if (i + 1 == header_lines) {
      out += join_line(rule);
    }
  }
  return out;
}

std::string render_json(const Table& table) {
  ordered_json rows = ordered_json::array();
  for (const auto& row : table.rows) {
    ordered_json object = ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      object[table.columns[i].key] = std::visit(
          [](const auto& value) -> ordered_json {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
              return nullptr;
            } else {
              return value;
            }
          },
          row[i].value);
    }
    rows.push_back(std::move(object));
  }
  ordered_json document;
  document["schema_version"] = kResultSchemaVersion;
  document[table.name] = std::move(rows);
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::string csv_text(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell.value)) {
    return shortest(*number);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&cell.value)) {
    return std::to_string(*whole);
  }
  if (const auto* yes = std::get_if<bool>(&cell.value)) {
    return *yes ? "true" : "false";
  }
  if (const auto* text = std::get_if<std::string>(&cell.value)) {
    return csv_field(*text);
  }
  return "";
}

std::string render_csv(const Table& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    out += (i == 0 ? "" : ",") + csv_field(table.columns[i].key);
  }
  out += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += (i == 0 ? "" : ",") + csv_text(row[i]);
    }
    out += '\n';
  }
  return out;
}

std::string render_markdown(const Table& table) {
  const std::vector<bool> right = right_aligned(table);
  std::string out = "|";
  for (const Column& column : table.columns) {
    const std::string unit = column.unit.empty() ? "" : " (" + column.unit + ")";
    out += ' ' + escape_markdown(column.title + unit) + " |";
  }
  out += "\n|";
  for (const bool is_right : right) {
    out += is_right ? " ---: |" : " --- |";
  }
  out += '\n';
  for (const auto& row : table.rows) {
    out += '|';
    for (const Cell& cell : row) {
      out += ' ' + escape_markdown(cell.shown) + " |";
    }
    out += '\n';
  }
  return out;
}

}  // namespace

Format format_of(std::string_view name) {
  return static_cast<Format>(index_of(name, kFormatNames, "format", "--format"));
}

Cell text_cell(std::string text) { return {text, text}; }

Cell whole_cell(std::int64_t number) { return {number, std::to_string(number)}; }

Cell yes_no_cell(bool yes) { return {yes, yes ? "yes" : "no"}; }

Cell unknown_cell() { return {std::monostate{}, std::string(kUnknown)}; }

Cell number_cell(double number, int decimals) {
  return std::isfinite(number) ? Cell{number, fixed(number, decimals)} : unknown_cell();
}

Cell percent_cell(double share, int decimals) {
  return std::isfinite(share) ? Cell{share, percent(share, decimals)} : unknown_cell();
}

std::string render_table(const Table& table, Format format) {
  for (const auto& row : table.rows) {
    DIPSIM_CHECK(row.size() == table.columns.size(), "a table row has the wrong number of cells");
  }
  switch (format) {
    case Format::Json:
      return render_json(table);
    case Format::Csv:
      return render_csv(table);
    case Format::Markdown:
      return render_markdown(table);
    case Format::Table:
      break;
  }
  return render_text(table);
}

}  // namespace dipsim
