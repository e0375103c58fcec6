// SPDX-License-Identifier: Apache-2.0
// Damaged tables through every set builder: a result or an error that blames the table, nothing
// else.
#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "sim/core/random.hpp"
#include "tests/support/environment.hpp"
#include "validate/published_data.hpp"
#include "validate/registry.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace dipsim;
namespace fs = std::filesystem;

/// At most so many lines of NAME.csv, shipped or of the reference data; "" where there is none.
std::string sample_of(const std::string& name, int lines) {
  std::vector<fs::path> folders = {shipped_published_folder()};
  if (const auto data = test::shared_data()) {
    folders.push_back(*data / "published");
  }
  for (const fs::path& folder : folders) {
    const fs::path path = folder / (name + ".csv");
    if (!fs::exists(path)) {
      continue;
    }
    const std::string text = read_file(path);
    std::size_t end = 0;
    for (int line = 0; line < lines && end < text.size(); ++line) {
      end = std::min(text.find('\n', end), text.size() - 1) + 1;
    }
    return text.substr(0, end);
  }
  return "";
}

/// Builds the sets and sums them up. Anything but an error of the input goes through. Returns
/// whether there were sets.
bool survives(const SetBuilder& builder, const std::string& text) {
  try {
    for (const ValidationSet& set : build_sets(builder, CsvTable(text, "damaged.csv"))) {
      const ErrorSummary summary = summarize(set);
      CHECK(std::isfinite(summary.mape_percent));
      CHECK(std::isfinite(summary.max_percent));
    }
    return true;
  } catch (const Error& error) {
    CAPTURE(error.where());
    CAPTURE(error.message());
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where().find("damaged.csv") != std::string::npos);
    return false;
  }
}

/// One to three bytes replaced, or the end cut off.
std::string damaged(std::string text, RandomStream& random) {
  const auto place = [&] {
    return static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(text.size()) - 1));
  };
  if (random.integer(0, 4) == 0) {
    text.resize(place());
    return text;
  }
  constexpr std::string_view kBytes = "0123456789.-+e,,\"\n\r#naif \xff";
  for (std::int64_t count = random.integer(1, 3); count > 0; --count) {
    text[place()] = kBytes[static_cast<std::size_t>(
        random.integer(0, static_cast<std::int64_t>(kBytes.size()) - 1))];
  }
  return text;
}

}  // namespace

TEST_CASE("damaged tables give a result or an error that names the table") {
  constexpr int kLines = 16;
  constexpr int kTries = 40;
  std::size_t builders = 0;
  for (const SetBuilder& builder : all_set_builders()) {
    const std::string name(builder.table);
    const std::string text = sample_of(name, kLines);
    if (text.empty()) {
      continue;  // neither shipped nor among the reference data
    }
    ++builders;
    CAPTURE(name);
    RandomStream random(1, name);
    int results = 0;
    for (int i = 0; i < kTries; ++i) {
      const std::string bad = damaged(text, random);
      CAPTURE(bad);
      results += survives(builder, bad) ? 1 : 0;
    }
    CHECK(results < kTries);  // some damage is always noticed
  }
  CHECK(builders >= 3);
}

TEST_CASE("a table under the name of another is refused by its columns") {
  for (const SetBuilder& builder : all_set_builders()) {
    const std::string name(builder.table);
    CAPTURE(name);
    CHECK_FALSE(survives(builder, "colour,taste\nred,sweet\n"));
    const std::string text = sample_of(name, 16);
    CHECK((text.empty() || survives(builder, text)));
  }
}

TEST_CASE("the registry names the sets that its builders build, in their order") {
  for (const SetBuilder& builder : all_set_builders()) {
    const std::string text = sample_of(std::string(builder.table), 1 << 20);
    if (text.empty()) {
      continue;
    }
    CAPTURE(builder.table);
    std::vector<std::string_view> expected(builder.sets.begin(), builder.sets.end());
    std::erase(expected, "");
    const std::vector<ValidationSet> sets = build_sets(builder, CsvTable(text, "table.csv"));
    std::vector<std::string_view> built;
    for (const ValidationSet& set : sets) {
      built.push_back(set.name);
    }
    CHECK(built == expected);
  }
}
