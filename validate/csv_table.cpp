// SPDX-License-Identifier: Apache-2.0
#include "validate/csv_table.hpp"

#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

namespace dipsim {

namespace {

/// Splits a text into rows of cells and keeps count of lines and columns.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// False at the end of the text. `line`: where the row starts.
  bool next(std::vector<std::string>& cells, int& line) {
    skip_comments();
    if (at_end()) {
      return false;
    }
    line = line_;
    cells.clear();
    do {
      cells.push_back(cell());
    } while (take(','));
    take('\r');
    if (!at_end() && !take('\n')) {
      fail("a quoted cell must end at a comma or at the end of the line");
    }
    return true;
  }

 private:
  [[nodiscard]] bool at_end() const { return position_ == text_.size(); }

  [[nodiscard]] char here() const { return text_[position_]; }

  [[noreturn]] void fail(const std::string& message) const {
    fail_input(fmt::format("{}:{}:{}", file_, line_, position_ - line_start_ + 1), message);
  }

  bool take(char wanted) {
    if (at_end() || here() != wanted) {
      return false;
    }
    ++position_;
    if (wanted == '\n') {
      ++line_;
      line_start_ = position_;
    }
    return true;
  }

  void skip_comments() {
    while (!at_end() && (here() == '#' || here() == '\n' || here() == '\r')) {
      while (!at_end() && here() != '\n') {
        ++position_;
      }
      take('\n');
    }
  }

  std::string cell() { return !at_end() && here() == '"' ? quoted() : plain(); }

  std::string plain() {
    const std::size_t start = position_;
    while (!at_end() && here() != ',' && here() != '\n' && here() != '\r') {
      if (here() == '"' || here() == '\0') {
        fail(here() == '"' ? "a quote inside a cell; cells with quotes or commas are quoted whole"
                           : "a zero byte; this is no text file");
      }
      ++position_;
    }
    return std::string(text_.substr(start, position_ - start));
  }

  std::string quoted() {
    const int line = line_;
    take('"');
    std::string out;
    while (!at_end()) {
      if (take('"')) {
        if (!take('"')) {
          return out;
        }
        out += '"';
      } else if (take('\n')) {
        out += '\n';
      } else {
        out += here();
        ++position_;
      }
    }
    fail(fmt::format("the quote opened on line {} is never closed; is the file cut off?", line));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t position_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

/// The number that a whole cell consists of; nothing for empty cells and words.
std::optional<double> number_of(std::string_view cell) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (end != cell.data() + cell.size() || cell.empty() || error == std::errc::invalid_argument) {
    return std::nullopt;
  }
  return error == std::errc::result_out_of_range ? std::numeric_limits<double>::infinity() : value;
}

}  // namespace

int CsvRow::line() const { return table_->lines_[row_]; }

bool CsvRow::has(std::string_view column) const {
  return std::ranges::find(table_->columns_, column) != table_->columns_.end();
}

std::string_view CsvRow::text(std::string_view column) const {
  return table_->cells_[row_ * table_->columns_.size() + table_->column(column)];
}

void CsvRow::fail(std::string_view column, const std::string& message) const {
  fail_input(fmt::format("{}:{}: {}", table_->file_, line(), column), message);
}

std::optional<double> CsvRow::number_if(std::string_view column, double low, double high) const {
  const std::optional<double> value = number_of(text(column));
  if (value && (!std::isfinite(*value) || *value < low || *value > high)) {
    fail(column, fmt::format("\"{}\" is not a number from {} to {}", shortened(text(column)),
                             shortest(low), shortest(high)));
  }
  return value;
}

double CsvRow::number(std::string_view column, double low, double high) const {
  const std::optional<double> value = number_if(column, low, high);
  if (!value) {
    fail(column, text(column).empty()
                     ? "is empty; a number is needed"
                     : fmt::format("\"{}\" is no number", shortened(text(column))));
  }
  return *value;
}

std::int64_t CsvRow::whole(std::string_view column, std::int64_t low, std::int64_t high) const {
  constexpr double kExact = 9007199254740992.0;  // 2^53: whole numbers up to here are exact
  const double value =
      number(column, static_cast<double>(low), std::min(static_cast<double>(high), kExact));
  if (value != std::floor(value)) {
    fail(column, fmt::format("\"{}\" is no whole number", text(column)));
  }
  return static_cast<std::int64_t>(value);
}

CsvTable::CsvTable(std::string_view text, std::string file) : file_(std::move(file)) {
  CsvReader reader(text, file_);
  int line = 0;
  if (!reader.next(columns_, line)) {
    fail_input(file_, "the table is empty; its first line must name the columns");
  }
  for (auto column = columns_.begin(); column != columns_.end(); ++column) {
    if (std::find(columns_.begin(), column, *column) != column) {
      fail_input(fmt::format("{}:{}", file_, line), fmt::format("two columns \"{}\"", *column));
    }
  }
  std::vector<std::string> cells;
  while (reader.next(cells, line)) {
    if (cells.size() != columns_.size()) {
      fail_input(fmt::format("{}:{}:{}", file_, line, std::min(cells.size(), columns_.size()) + 1),
                 fmt::format("{} cells in a table of {} columns; is the file cut off?",
                             cells.size(), columns_.size()));
    }
    lines_.push_back(line);
    std::ranges::move(cells, std::back_inserter(cells_));
  }
  if (lines_.empty()) {
    fail_input(fmt::format("{}:{}", file_, line),
               "no row stands below the names of the columns; is the file cut off?");
  }
}

CsvTable CsvTable::from_file(const std::filesystem::path& path) {
  return {read_file(path), path.string()};
}

std::vector<CsvRow> CsvTable::rows() const {
  std::vector<CsvRow> rows;
  rows.reserve(size());
  for (std::size_t row = 0; row < size(); ++row) {
    rows.push_back((*this)[row]);
  }
  return rows;
}

std::size_t CsvTable::column(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name);
  if (found == columns_.end()) {
    const std::vector<std::string_view> known(columns_.begin(), columns_.end());
    fail_input(file_, unknown_name("column", name, known));
  }
  return static_cast<std::size_t>(found - columns_.begin());
}

}  // namespace dipsim
