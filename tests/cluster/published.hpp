// SPDX-License-Identifier: Apache-2.0
// Tables of published measurements, for tests that compare with them.
#pragma once

#include "tests/support/environment.hpp"

#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::test {

/// One row of a table by column name.
using PublishedRow = std::map<std::string, std::string>;

/// Cells of a CSV text, row by row; a cell in quotes may hold commas.
inline std::vector<std::vector<std::string>> csv_cells(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      rows.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      rows.emplace_back(1, "");
    } else if (c != '\r') {
      rows.back().back() += c;
    }
  }
  return rows;
}

/// The table published/NAME.csv; nothing, and the test reported as skipped, where it is not there.
inline std::optional<std::vector<PublishedRow>> published_rows(const std::string& name) {
  const auto folder = shared_data();
  std::ifstream in;
  if (folder) {
    in.open(*folder / "published" / (name + ".csv"));
  }
  if (!in.is_open()) {
    report_skipped("published/" + name + ".csv is not there");
    return std::nullopt;
  }
  const auto cells = csv_cells({std::istreambuf_iterator<char>(in), {}});
  std::vector<PublishedRow> rows;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    if (cells[i].size() == cells[0].size()) {
      PublishedRow row;
      for (std::size_t j = 0; j < cells[0].size(); ++j) {
        row[cells[0][j]] = cells[i][j];
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

/// Mean of |predicted / measured − 1|.
class MeanError {
 public:
  void add(double predicted, double measured) {
    const double error = predicted / measured - 1.0;
    sum_ += error < 0.0 ? -error : error;
    ++count_;
  }

  [[nodiscard]] double percent() const { return 100.0 * sum_ / count_; }

  [[nodiscard]] int count() const { return count_; }

 private:
  double sum_ = 0.0;
  int count_ = 0;
};

}  // namespace dipsim::test
