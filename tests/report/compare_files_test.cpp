// SPDX-License-Identifier: Apache-2.0
#include "report/compare_files.hpp"

#include "tests/report/example.hpp"
#include "tests/report/markup.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace dipsim;

TEST_CASE("files of a comparison: all there, none empty, the same every time") {
  const std::vector<NamedFile> files = comparison_files(test::small_comparison());
  std::set<std::string> names;
  for (const NamedFile& file : files) {
    CHECK(names.insert(file.name).second);
    CHECK_FALSE(file.content.empty());
  }
  const std::set<std::string> expected = {
      "result.json",     "iterations.csv",    "summary.md",        "report.html",
      "comparison.svg",  "timeline_slow.svg", "timeline_fast.svg", "timeline_huge.svg",
      "memory_slow.svg", "memory_fast.svg",   "memory_huge.svg",   "slow.trace.json",
      "fast.trace.json", "huge.trace.json"};
  CHECK(names == expected);
  const std::vector<NamedFile> again = comparison_files(test::small_comparison());
  REQUIRE(again.size() == files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    CHECK(again[i].content == files[i].content);
  }
}

TEST_CASE("files of a comparison: hostile and equal names give safe and different files") {
  const Comparison comparison = test::hostile_comparison();
  const std::vector<std::string> stems = schedule_file_stems(comparison);
  REQUIRE(stems.size() == 3);
  CHECK(std::set<std::string>(stems.begin(), stems.end()).size() == 3);
  for (const NamedFile& file : comparison_files(comparison)) {
    CHECK(file.name.find_first_of("/\\<>\"' \n") == std::string::npos);
    if (file.name.ends_with(".json")) {
      CHECK(nlohmann::json::accept(file.content));
    } else if (file.name.ends_with(".svg") || file.name.ends_with(".html")) {
      CHECK(test::markup_fault(file.content) == "");
    }
  }
}

TEST_CASE("files of a comparison: a schedule without a timeline has no pictures") {
  Comparison comparison = test::small_comparison();
  comparison.schedules[0].sample = {};
  const std::vector<NamedFile> files = comparison_files(comparison);
  CHECK(std::ranges::none_of(
      files, [](const NamedFile& file) { return file.name.find("slow") != std::string::npos; }));
  CHECK(files.size() == 5 + 2 * 3);
}
