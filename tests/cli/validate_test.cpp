// SPDX-License-Identifier: Apache-2.0
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/run_program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace dipsim::test {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Outcome validate(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  arguments.insert(arguments.begin(), "validate");
  return run_program(arguments, folder.path());
}

const json& named(const json& document, const std::string& name) {
  const auto found =
      std::ranges::find_if(document["sets"], [&](const json& set) { return set["name"] == name; });
  REQUIRE(found != document["sets"].end());
  return *found;
}

}  // namespace

TEST_CASE("validate holds predictions against the shipped tables and names the missing ones") {
  const Outcome outcome = validate({});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("zero_bubble_main") != std::string::npos);
  CHECK(outcome.out.find("ideal formula") != std::string::npos);
  CHECK(outcome.out.find("table vtrain_single.csv not found: give --published DIR") !=
        std::string::npos);
  CHECK(outcome.out.find("14.6B ZB-1p") == std::string::npos);  // rows only when asked for
}

TEST_CASE("validate prints every row with its error in pure JSON") {
  const Outcome outcome = validate({"--set", "zero_bubble_main", "--format", "json"});
  REQUIRE(outcome.exit_code == 0);
  const json document = json::parse(outcome.out);
  CHECK(document["schema_version"] == 1);
  const json& set = named(document, "zero_bubble_main");
  for (const char* key :
       {"name", "title", "quantity", "unit", "source", "rows", "row_count", "fitted_count",
        "unusable", "mape_percent", "max_percent", "bias_percent", "constant_mape_percent",
        "claim_percent", "bar_percent", "others", "notes"}) {
    CAPTURE(key);
    CHECK(set.contains(key));
  }
  REQUIRE(set["rows"].size() == set["row_count"]);
  double sum = 0.0;
  for (const json& row : set["rows"]) {
    const double error = row["predicted"].get<double>() / row["measured"].get<double>() - 1.0;
    CHECK(row["error_percent"].get<double>() == doctest::Approx(100.0 * error));
    CHECK(row["label"].is_string());
    CHECK(row["line"].get<int>() > 1);
    CHECK(row.contains("note"));
    sum += std::abs(100.0 * error);
  }
  CHECK(set["mape_percent"].get<double>() ==
        doctest::Approx(sum / static_cast<double>(set["rows"].size())));
  CHECK(set["claim_percent"].is_null());
  CHECK(set["others"][0]["name"] == "ideal formula");
  CHECK(set["others"][0]["mape_percent"].get<double>() == doctest::Approx(8.7).epsilon(0.01));
  CHECK(set["unusable"][0]["reason"].is_string());
}

TEST_CASE("validate shows only the named sets, by their own name or that of their table") {
  const json table =
      json::parse(validate({"--set", "zero_bubble_main", "--format", "json"}).out)["sets"];
  REQUIRE(table.size() == 3);
  const json set =
      json::parse(validate({"--set", "zero_bubble_bubbles", "--format", "json"}).out)["sets"];
  REQUIRE(set.size() == 1);
  CHECK(std::ranges::find(table, set[0]) != table.end());
  const Outcome text = validate({"--set", "zero_bubble_main"});
  CHECK(text.out.find("14.6B ZB-1p, 16 GPUs, m = 48") != std::string::npos);
  CHECK(text.out.find("gemm") == std::string::npos);
}

TEST_CASE("a set that is asked for and whose table is nowhere is an error of the input") {
  const Outcome outcome = validate({"--set", "llm_foundry_mpt"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err.find(
            "llm_foundry_mpt.csv is not among the shipped tables; give --published DIR") !=
        std::string::npos);
  // The name of a set is known without its table.
  const Outcome set = validate({"--set", "llm_foundry_mpt h100_80gb bf16"});
  CHECK(set.exit_code == 2);
  CHECK(set.err.find("llm_foundry_mpt.csv is not among") != std::string::npos);
}

TEST_CASE("validate prints the same bytes on any number of threads") {
  const std::vector<std::string> command = {"--rows", "--jobs", "1"};
  const Outcome one = validate(command);
  const Outcome several = validate({"--rows", "--jobs", "3"});
  REQUIRE(one.exit_code == 0);
  CHECK(one.out == several.out);
}

TEST_CASE("validate prints comma-separated values of sets, and of rows when asked for") {
  const Outcome sets = validate({"--set", "zero_bubble_bubbles", "--format", "csv"});
  CHECK(sets.out.starts_with("set,label,line,predicted,measured,error_percent,note\n"));
  CHECK(std::ranges::count(sets.out, '\n') == 61);
  const Outcome summary = validate({"--format", "csv"});
  CHECK(summary.exit_code == 0);
  CHECK(summary.out.starts_with("name,quantity,row_count,fitted_count,unusable_count,"));
}

TEST_CASE("validate refuses unknown sets, folders that are none and malformed tables") {
  const Outcome set = validate({"--set", "zero_buble_main"});
  CHECK(set.exit_code == 2);
  CHECK(set.out.empty());
  CHECK(set.err.find("did you mean \"zero_bubble_main\"?") != std::string::npos);
  const Outcome folder = validate({"--published", "no-such-folder"});
  CHECK(folder.exit_code == 2);
  CHECK(folder.err.find("no-such-folder") != std::string::npos);

  const TemporaryFolder tables;
  const std::string cut = read_file(source_dir() / "validate/published/zero_bubble_main.csv");
  write_file(tables.path() / "zero_bubble_main.csv", cut.substr(0, cut.size() / 2));
  const std::vector<std::string> broken = {
      "--published", tables.path().string(), "--set", "zero_bubble_main", "--format", "json"};
  const Outcome table = validate(broken);
  CHECK(table.exit_code == 2);
  CHECK(table.err.find("zero_bubble_main.csv:") != std::string::npos);
  CHECK(json::parse(table.out)["error"]["kind"] == "input");
}

TEST_CASE("the validation page is what the program prints from all tables") {
  const auto data = shared_data();
  if (!data || !fs::is_directory(*data / "published")) {
    report_skipped("the folder of published tables is not there");
    return;
  }
  const Outcome outcome =
      validate({"--published", (*data / "published").string(), "--format", "markdown"});
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.out == read_file(source_dir() / "docs/validation.md"));
}

}  // namespace dipsim::test
