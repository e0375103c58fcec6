// SPDX-License-Identifier: Apache-2.0
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/run_program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

namespace dipsim::test {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::vector<std::string> kSmallCompare = {"compare",
                                                "--model",
                                                "vlm-s",
                                                "--trace",
                                                "dip-images",
                                                "--schedules",
                                                "1f1b,interleaved,dip",
                                                "--iterations",
                                                "3",
                                                "--microbatches",
                                                "8",
                                                "--quiet"};

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_file(entry.path());
  }
  return files;
}

/// From iterations.csv.
double iteration_time_ms(const fs::path& folder, const std::string& schedule,
                         std::size_t iteration) {
  std::istringstream lines(read_file(folder / "iterations.csv"));
  std::string line;
  std::getline(lines, line);
  REQUIRE(line.starts_with("iteration,schedule,iteration_time_ms,"));
  const std::string start = std::to_string(iteration) + "," + schedule + ",";
  while (std::getline(lines, line)) {
    if (line.starts_with(start)) {
      return std::stod(line.substr(start.size()));
    }
  }
  FAIL("no such row: " << start);
  return 0.0;
}

}  // namespace

TEST_CASE("simulate: 1F1B of the reference case W1 takes 213 units") {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_program({"simulate", "--ranks", "8", "--microbatches", "64", "--forward-us", "1000",
                   "--backward-input-us", "1000", "--backward-weight-us", "1000", "--schedule",
                   "1f1b", "--format", "json"},
                  folder.path());
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const json result = json::parse(outcome.out);
  CHECK(result.at("schema_version") == 1);
  CHECK(result.at("makespan_ms") == 213.0);
  CHECK(result.at("fits") == true);
}

TEST_CASE("simulate: 65,536 interleaved passes run in at most 40 MiB") {
  const TemporaryFolder folder;
  const Outcome outcome = run_program({"simulate", "--ranks", "32", "--microbatches", "256",
                                       "--chunks", "4", "--schedule", "interleaved"},
                                      folder.path());
  REQUIRE(outcome.exit_code == 0);
#ifndef __SANITIZE_ADDRESS__
  CHECK(outcome.peak_kib <= 40 * 1024);
#endif
}

TEST_CASE("compare writes every file, and the same bytes whatever the number of threads") {
  const TemporaryFolder folder;
  for (const char* jobs : {"1", "2", "5"}) {
    const Outcome outcome = run_program(
        with(kSmallCompare, {"--jobs", jobs, "--out", std::string("out") + jobs}), folder.path());
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
  }
  std::map<std::string, std::string> first = files_of(folder.path() / "out1");
  for (const char* name : {"result.json", "run.json", "iterations.csv", "summary.md", "report.html",
                           "comparison.svg", "timeline_dip.svg", "memory_dip.svg", "dip.trace.json",
                           "plan_dip.json", "plan_1f1b.json"}) {
    CHECK(first.contains(name));
  }
  first.erase("run.json");
  for (const char* other : {"out2", "out5"}) {
    std::map<std::string, std::string> files = files_of(folder.path() / other);
    files.erase("run.json");
    CHECK(files == first);
  }
}

TEST_CASE("a plan that compare wrote runs again with the same times") {
  const TemporaryFolder folder;
  REQUIRE(run_program(with(kSmallCompare, {"--out", "out"}), folder.path()).exit_code == 0);
  const json comparison = json::parse(read_file(folder.path() / "out" / "result.json"));
  const Outcome again =
      run_program({"simulate", "out/plan_dip.json", "--format", "json"}, folder.path());
  REQUIRE(again.exit_code == 0);
  const json result = json::parse(again.out);
  const auto iteration = comparison.at("sample_iteration").get<std::size_t>();
  CHECK(result.at("iteration_time_ms") ==
        iteration_time_ms(folder.path() / "out", "dip", iteration));
}

TEST_CASE("plan writes a file that simulate runs, with its search facts in describe") {
  const TemporaryFolder folder;
  const Outcome planned = run_program(
      {"plan", "--model", "vlm-s", "--trace", "dip-images", "--microbatches", "8", "--iteration",
       "2", "--schedule", "dip", "--out", "plan.json", "--format", "json", "--quiet"},
      folder.path());
  CAPTURE(planned.err);
  REQUIRE(planned.exit_code == 0);
  const json before = json::parse(planned.out).at("schedules").at(0);
  const Outcome run = run_program({"simulate", "plan.json", "--format", "json"}, folder.path());
  REQUIRE(run.exit_code == 0);
  const json after = json::parse(run.out);
  CHECK(after.at("iteration_time_ms") == before.at("iteration_time_ms").at("mean"));
  CHECK(run_program({"describe", "plan.json"}, folder.path()).exit_code == 0);
}

TEST_CASE("a plan carries the engine that it was planned with, and flags replace it") {
  const TemporaryFolder folder;
  REQUIRE(run_program({"plan", "--microbatches", "8", "--schedule", "1f1b", "--send", "rendezvous",
                       "--host-issue-us", "500", "--out", "plan.json", "--quiet"},
                      folder.path())
              .exit_code == 0);
  const auto time = [&](const std::vector<std::string>& flags) {
    const Outcome run =
        run_program(with({"simulate", "plan.json", "--format", "json"}, flags), folder.path());
    REQUIRE(run.exit_code == 0);
    return json::parse(run.out).at("iteration_time_ms").get<double>();
  };
  CHECK(time({}) == time({"--send", "rendezvous", "--host-issue-us", "500"}));
  CHECK(time({}) > time({"--send", "eager", "--host-issue-us", "0"}));
}

TEST_CASE("where nothing fits the exit code is 3, the report is kept and no plan is written") {
  const TemporaryFolder folder;
  const std::vector<std::string> tight = {"--usable-memory-fraction", "0.25", "--microbatches", "8",
                                          "--quiet"};
  const Outcome compared = run_program(
      with({"compare", "--schedules", "1f1b", "--iterations", "2", "--out", "out"}, tight),
      folder.path());
  CHECK(compared.exit_code == 3);
  CHECK(fs::exists(folder.path() / "out" / "report.html"));
  const Outcome planned =
      run_program(with({"plan", "--schedule", "1f1b", "--out", "plan.json"}, tight), folder.path());
  CHECK(planned.exit_code == 3);
  CHECK_FALSE(fs::exists(folder.path() / "plan.json"));
}

TEST_CASE("a schedule that is impossible is left out with its reason, the others are compared") {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_program({"compare", "--schedules", "1f1b,dip", "--usable-memory-fraction", "0.22",
                   "--microbatches", "8", "--iterations", "2", "--format", "json", "--quiet"},
                  folder.path());
  CHECK(outcome.exit_code == 3);
  const json result = json::parse(outcome.out);  // one document, whatever the exit code
  CHECK(result.at("schedules").size() == 1);
  CHECK(outcome.out.find("left out") != std::string::npos);
  CHECK(outcome.out.find("dip") != std::string::npos);
}

TEST_CASE("compose makes the iterations of uneven microbatches shorter, and the result says so") {
  const TemporaryFolder folder;
  write_file(folder.path() / "e.json",
             R"({"compose": true, "trace": "obelics-like", "iterations": 2,
    "microbatches": 16, "schedules": ["1f1b"]})");
  const auto compare = [&](const std::vector<std::string>& more) {
    const Outcome outcome =
        run_program(with({"compare", "e.json", "--format", "json"}, more), folder.path());
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
  };
  const json composed = compare({"--out", "out"});
  const json packed = compare({"--no-compose"});
  CHECK(composed.at("inputs").at("compose") == "true");
  CHECK(packed.at("inputs").at("compose") == "false");
  CHECK(compare({"--no-compose", "--compose", "--jobs", "1"}) == composed);
  const auto mean_ms = [](const json& result) {
    return result.at("schedules").at(0).at("iteration_time_ms").at("mean").get<double>();
  };
  CHECK(mean_ms(composed) < mean_ms(packed));
  CHECK(read_file(folder.path() / "out" / "summary.md").find("Composed microbatches") !=
        std::string::npos);
  const Outcome nothing_to_do = run_program(with(kSmallCompare, {"--compose"}), folder.path());
  CHECK(nothing_to_do.exit_code == 0);
  CHECK(nothing_to_do.out.find("compose changes nothing") != std::string::npos);
}

TEST_CASE("describe shows what a cluster file says of fabric, measured tables and slow GPUs") {
  const TemporaryFolder folder;
  write_file(folder.path() / "lab.json", R"({"name": "lab", "title": "Lab", "gpu": "h100",
    "nodes": 4, "gpus_per_node": 8, "nic_gbytes_per_s": 50,
    "fabric": {"kind": "fat-tree", "nodes_per_leaf": 2, "oversubscription": 3},
    "measured": [{"collective": "all-reduce", "gpus": 16, "nodes": 2, "source": "our logs",
                  "points": [[1024, 20], [1048576, 60]]}],
    "slow_gpus": [{"gpu": 17, "speed": 0.8}]})");
  const Outcome outcome = run_program({"describe", "lab.json"}, folder.path());
  CHECK(outcome.exit_code == 0);
  for (const char* const text : {"fat-tree, 2 nodes per leaf switch, oversubscription 3",
                                 "all-reduce on 16 GPUs in 2 nodes, 2 sizes from 1024 to 1048576 "
                                 "bytes (our logs)",
                                 "17 at 0.8 of full speed", "library workspaces"}) {
    CAPTURE(text);
    CHECK(outcome.out.find(text) != std::string::npos);
  }
}

TEST_CASE("compare with a slow GPU names it, and what it costs") {
  const TemporaryFolder folder;
  const std::vector<std::string> command = {"compare",
                                            "--schedules",
                                            "1f1b:recompute=full",
                                            "--microbatches",
                                            "4",
                                            "--iterations",
                                            "1",
                                            "--dp",
                                            "2",
                                            "--slow",
                                            "node1=0.5",
                                            "--slow",
                                            "3=0.75"};
  const Outcome table = run_program(command, folder.path());
  CHECK(table.exit_code == 0);
  CHECK(table.out.find("Slow GPUs make an iteration of 1f1b:recompute=full ") != std::string::npos);
  CHECK(table.out.find("GPUs 12 to 15, at 0.5 of full speed") != std::string::npos);
  std::vector<std::string> as_json = command;
  as_json.insert(as_json.end(), {"--format", "json"});
  const auto result = nlohmann::json::parse(run_program(as_json, folder.path()).out);
  CHECK(result["inputs"]["slow_gpus"] == "node1=0.5,3=0.75");
  const auto& schedule = result["schedules"][0];
  CHECK(schedule["slow_ranks"].size() == 3);
  CHECK(schedule["slow_ranks_cost_ms"] > 0.0);
  double lag = 0.0;
  for (const auto& part : schedule["straggler"]["lag_by_cause_ms"]) {
    lag += part.get<double>();
  }
  CHECK(lag == doctest::Approx(schedule["straggler"]["lag_ms"].get<double>()));
  double peak = 0.0;
  for (const auto& part : schedule["peak_memory_by_contents_gib"]) {
    peak += part[0].get<double>();
  }
  CHECK(peak == doctest::Approx(schedule["peak_memory_gib"][0].get<double>()));
}

TEST_CASE("list and describe know everything by name") {
  const TemporaryFolder folder;
  for (const char* kind : {"models", "clusters", "gpus", "schedules", "traces"}) {
    CAPTURE(kind);
    const Outcome list = run_program({"list", kind, "--format", "json"}, folder.path());
    REQUIRE(list.exit_code == 0);
    const json entries = json::parse(list.out).at(kind);
    CHECK(entries.size() >= 4);
    for (const json& entry : entries) {
      const Outcome described =
          run_program({"describe", entry.at("name").get<std::string>()}, folder.path());
      CAPTURE(entry.dump());
      CHECK(described.exit_code == 0);
      CHECK_FALSE(described.out.empty());
    }
  }
}

TEST_CASE("a --fail-if condition about what is not there is refused before the work starts") {
  const TemporaryFolder folder;
  for (const char* condition :
       {R"("dop".iteration_time_ms.mean > 1)", R"("dip".iteration_time.mean > 1)",
        R"("dip".peak_memory_gib.99 > 1)"}) {
    CAPTURE(condition);
    const Outcome outcome =
        run_program(with(kSmallCompare, {"--out", "out", "--fail-if", condition}), folder.path());
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK_FALSE(fs::exists(folder.path() / "out"));
  }
}

TEST_CASE("the report is written even when nobody reads stdout") {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_program(with(kSmallCompare, {"--out", "out"}), folder.path(), "/dev/full");
  CHECK(outcome.exit_code == 4);
  CHECK(fs::exists(folder.path() / "out" / "report.html"));
}

TEST_CASE("a --fail-if condition that holds ends with exit code 5 and keeps the report") {
  const TemporaryFolder folder;
  const std::string condition = R"("dip".iteration_time_ms.mean > 0.001)";
  const Outcome outcome =
      run_program(with(kSmallCompare, {"--out", "out", "--fail-if", condition}), folder.path());
  CHECK(outcome.exit_code == 5);
  CHECK(outcome.err.find("--fail-if") != std::string::npos);
  CHECK(fs::exists(folder.path() / "out" / "report.html"));
}

}  // namespace dipsim::test
