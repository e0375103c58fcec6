// SPDX-License-Identifier: Apache-2.0
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/run_program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace dipsim::test {

namespace {

using nlohmann::json;

Outcome validate(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  arguments.insert(arguments.begin(), {"validate", "--paper"});
  return run_program(arguments, folder.path());
}

const std::string kQuickest = "vlm-m-equal-memory";

}  // namespace

TEST_CASE("validate --paper prints claims and schedules in pure JSON, the same on any threads") {
  const Outcome one = validate({"--experiment", kQuickest, "--format", "json", "--jobs", "1"});
  REQUIRE(one.exit_code == 0);
  CHECK(one.out == validate({"--experiment", kQuickest, "--format", "json", "--jobs", "3"}).out);
  const json document = json::parse(one.out);
  CHECK(document["schema_version"] == 1);
  REQUIRE(document["experiments"].size() == 1);
  const json& schedules = document["experiments"][0]["schedules"];
  REQUIRE(schedules.size() == 3);
  REQUIRE(document["claims"].size() == 2);
  for (const json& claim : document["claims"]) {
    CHECK(claim["experiment"] == kQuickest);
    CHECK(claim["ratio"].get<double>() > 0.0);
  }
  const json& ratio = document["claims"][1];
  REQUIRE(ratio["quantity"] == "throughput");
  CHECK(ratio["dipsim"].get<double>() == doctest::Approx(schedules[1]["seconds"].get<double>() /
                                                         schedules[2]["seconds"].get<double>()));
}

TEST_CASE("the page about the paper holds what the program prints") {
  const Outcome outcome = validate({"--experiment", kQuickest, "--format", "markdown"});
  REQUIRE(outcome.exit_code == 0);
  const std::string page = read_file(source_dir() / "docs/paper.md");
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    if (!line.starts_with("|--")) {  // widths of columns depend on other experiments
      CHECK(page.find(line) != std::string::npos);
    }
  }
}

TEST_CASE("validate --paper refuses unknown experiments and flags of the other tables") {
  const Outcome unknown = validate({"--experiment", "vlm-x"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.out.empty());
  CHECK(unknown.err.find("did you mean") != std::string::npos);
  CHECK(validate({"--published", "."}).exit_code == 2);
  const TemporaryFolder folder;
  CHECK(run_program({"validate", "--experiment", "vlm-s"}, folder.path()).exit_code == 2);
}

}  // namespace dipsim::test
