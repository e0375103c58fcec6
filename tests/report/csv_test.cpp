// SPDX-License-Identifier: Apache-2.0
#include "report/csv.hpp"

#include "tests/report/example.hpp"
#include "tests/report/markup.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

using namespace dipsim;

namespace {

/// Fields by RFC 4180.
std::vector<std::vector<std::string>> parse(const std::string& text) {
  std::vector<std::vector<std::string>> lines = {{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      lines.back().back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      lines.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      lines.push_back({""});
    } else {
      lines.back().back() += c;
    }
  }
  lines.pop_back();
  return lines;
}

}  // namespace

TEST_CASE("iterations.csv: a row per iteration and schedule, with its load") {
  const auto lines = parse(iterations_csv(test::small_comparison()));
  REQUIRE(lines.size() == 1 + 2 * 3);
  const std::vector<std::string>& header = lines[0];
  CHECK(header.size() == iteration_columns().size() + 1);
  CHECK(header.back() == "images per microbatch");
  for (const auto& line : lines) {
    CHECK(line.size() == header.size());
  }
  const auto value = [&](std::size_t line, const std::string& column) {
    const auto found = std::ranges::find(header, column);
    REQUIRE(found != header.end());
    return lines[line][static_cast<std::size_t>(found - header.begin())];
  };
  CHECK(value(1, "iteration") == "0");
  CHECK(value(1, "schedule") == "slow");
  CHECK(value(1, "iteration_time_ms") == "110");
  CHECK(value(1, "idle_transfer_ms") == "10");
  CHECK(value(1, "images per microbatch") == "3");
  CHECK(value(4, "iteration") == "1");
  CHECK(value(4, "makespan_ms") == "300");
  CHECK(value(4, "busy_ms") == "500");
  CHECK(value(4, "peak_memory_gib") == "4");
  CHECK(value(6, "schedule") == "huge");
  CHECK(value(6, "fits") == "false");
  CHECK(value(6, "images per microbatch") == "9.5");
}

TEST_CASE("iterations.csv: every column is documented") {
  for (const Definition& column : iteration_columns()) {
    CHECK_FALSE(column.name.empty());
    CHECK_FALSE(column.meaning.empty());
  }
}

TEST_CASE("iterations.csv: hostile names and unknown values keep the number of columns") {
  Comparison comparison = test::hostile_comparison();
  comparison.loads.push_back({"short", {1.0}});
  comparison.schedules[0].iterations[0].mfu = std::numeric_limits<double>::quiet_NaN();
  comparison.schedules[1].iterations[0].peak_memory.clear();
  const std::string text = iterations_csv(comparison);
  CHECK_FALSE(test::prints_nan(text));
  const auto lines = parse(text);
  REQUIRE(lines.size() == 7);
  for (const auto& line : lines) {
    CHECK(line.size() == iteration_columns().size() + 2);
  }
  CHECK(lines[1][1] == test::kHostile);
  CHECK(lines[6].back().empty());
}

TEST_CASE("iterations.csv: without iterations there is only the header") {
  CHECK(parse(iterations_csv(Comparison{})).size() == 1);
}
