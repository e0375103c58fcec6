// SPDX-License-Identifier: Apache-2.0
// Tables of published measurements: cells that know their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

class CsvTable;

/// One row of a table. Valid while the table lives. Cells are named by their column; a column that
/// the table lacks is an Input error naming the nearest one.
class CsvRow {
 public:
  /// Line of the file that the row starts on, from 1.
  [[nodiscard]] int line() const;

  /// Whether the table has this column.
  [[nodiscard]] bool has(std::string_view column) const;

  [[nodiscard]] std::string_view text(std::string_view column) const;

  /// A finite number in [low, high]. Throws Input naming file, line and column: empty cells, words,
  /// nan, numbers out of range.
  [[nodiscard]] double number(std::string_view column, double low = 0.0,
                              double high = std::numeric_limits<double>::max()) const;

  /// The same, but nothing where the cell is empty or a word ("", "16-32", "unspecified"). Numbers
  /// out of range, nan and inf are errors all the same.
  [[nodiscard]] std::optional<double> number_if(
      std::string_view column, double low = 0.0,
      double high = std::numeric_limits<double>::max()) const;

  /// A whole number in [low, high], with the errors of number().
  [[nodiscard]] std::int64_t whole(
      std::string_view column, std::int64_t low = 0,
      std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;

  /// Throws Input at this cell.
  [[noreturn]] void fail(std::string_view column, const std::string& message) const;

 private:
  friend class CsvTable;

  CsvRow(const CsvTable& table, std::size_t row) : table_(&table), row_(row) {}

  const CsvTable* table_;
  std::size_t row_;
};

/// A CSV file (RFC 4180: comma, double quotes, the first line names the columns; LF or CRLF). Lines
/// that are blank or begin with '#' are skipped.
class CsvTable {
 public:
  /// `file` is the name printed in errors. Throws Input, naming file, line and column, on a quote
  /// that is never closed or stands inside a cell, on a row with more or fewer cells than columns
  /// (a file that was cut off ends with one), on two columns of one name, on a
  /// table without rows and on an empty text.
  CsvTable(std::string_view text, std::string file);

  static CsvTable from_file(const std::filesystem::path& path);

  [[nodiscard]] const std::string& file() const { return file_; }

  [[nodiscard]] std::size_t size() const { return lines_.size(); }

  [[nodiscard]] CsvRow operator[](std::size_t row) const { return {*this, row}; }

  [[nodiscard]] std::vector<CsvRow> rows() const;

 private:
  friend class CsvRow;

  [[nodiscard]] std::size_t column(std::string_view name) const;

  std::string file_;
  std::vector<std::string> columns_;
  std::vector<std::string> cells_;  ///< row by row
  std::vector<int> lines_;          ///< per row
};

}  // namespace dipsim
