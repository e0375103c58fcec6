// SPDX-License-Identifier: Apache-2.0
// Tables for people and programs, from one description.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dipsim {

enum class Format : std::uint8_t { Table, Json, Csv, Markdown };

/// What the user writes for each Format, in its order.
inline constexpr std::array<std::string_view, 4> kFormatNames = {"table", "json", "csv",
                                                                 "markdown"};

/// Throws Input on an unknown name.
Format format_of(std::string_view name);

struct Column {
  std::string key;    ///< for programs: snake_case, unit at the end, e.g. "iteration_time_ms"
  std::string title;  ///< for people
  std::string unit;   ///< for people; "" when it has none
};

/// One value: programs get `value` in full, people get `shown`.
struct Cell {
  std::variant<std::monostate, bool, std::int64_t, double, std::string> value;
  std::string shown;
};

Cell text_cell(std::string text);
Cell whole_cell(std::int64_t number);
Cell yes_no_cell(bool yes);
Cell unknown_cell();
/// `number`, shown with so many decimals; unknown where it is not finite.
Cell number_cell(double number, int decimals);
/// A share, shown in percent.
Cell percent_cell(double share, int decimals = 1);

struct Table {
  std::string name = "rows";  ///< key of the rows in JSON
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  ///< each as long as `columns`
};

/// The table with a line feed at its end. Table: columns of fixed width, numbers on the right,
/// units in a header line of their own. JSON: {"schema_version": 1, NAME: [{key: value}]} with
/// unknown values as null. CSV: fields quoted by RFC 4180, a header line of keys. Markdown: a pipe
/// table.
std::string render_table(const Table& table, Format format);

}  // namespace dipsim
