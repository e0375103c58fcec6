// SPDX-License-Identifier: Apache-2.0
#include "report/json.hpp"

#include "sim/core/error.hpp"
#include "tests/report/example.hpp"
#include "tests/report/markup.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>
#include <vector>

using namespace dipsim;
using nlohmann::json;

namespace {

const std::vector<std::string> kScheduleKeys = {
    "name",         "recompute",        "notes",        "iteration_time_ms",
    "makespan_ms",  "throughput_ratio", "bubble_ratio", "bubble_overhead",
    "mfu",          "peak_memory_gib",  "fits",         "lower_bound_ms",
    "gap_to_bound", "idle_by_cause_ms"};

}  // namespace

TEST_CASE("result.json has every key, with the figures of the summary") {
  const Comparison comparison = test::small_comparison();
  const json result = json::parse(result_json(comparison));
  CHECK(result["schema_version"] == 1);
  CHECK(result["inputs"]["seed"] == "7");
  CHECK(result["winner"] == "fast");
  CHECK(result["work_bound_ms"] == 132.5);
  REQUIRE(result["schedules"].size() == 3);
  for (const json& schedule : result["schedules"]) {
    for (const std::string& key : kScheduleKeys) {
      CHECK_MESSAGE(schedule.contains(key), key);
    }
    for (const std::string time : {"iteration_time_ms", "makespan_ms"}) {
      for (const std::string part : {"mean", "min", "max"}) {
        CHECK(schedule[time][part].is_number());
      }
    }
    for (const std::string cause : {"pipeline", "transfer", "collective", "host", "straggler"}) {
      CHECK(schedule["idle_by_cause_ms"][cause].is_number());
    }
  }
  const json& slow = result["schedules"][0];
  CHECK(slow["iteration_time_ms"]["max"] == 310.0);
  CHECK(slow["bubble_ratio"] == 0.1875);
  CHECK(slow["idle_by_cause_ms"]["pipeline"] == 70.0);
  CHECK(slow["peak_memory_gib"] == json({3.0, 4.0}));
  CHECK(result["schedules"][1]["notes"]["K llm"] == "2: 24.1 ms over 11.0 ms");
  CHECK(result["schedules"][2]["fits"] == false);
}

TEST_CASE("result.json: keys stand in a fixed order and equal results give equal bytes") {
  const Comparison comparison = test::small_comparison();
  const std::string text = result_json(comparison);
  CHECK(text == result_json(test::small_comparison()));
  CHECK(text.starts_with("{\n  \"schema_version\": 1,"));
  std::size_t before = text.find("\"schedules\"");
  for (const std::string& key : kScheduleKeys) {
    const std::size_t at = text.find('"' + key + '"', before);
    REQUIRE(at != std::string::npos);
    before = at;
  }
}

TEST_CASE("result.json: numbers read back exactly") {
  Comparison comparison = test::small_comparison();
  comparison.schedules[0].iterations[0].iteration = Duration{123'456'789'012'345};
  const json result = json::parse(result_json(comparison));
  CHECK(result["schedules"][0]["iteration_time_ms"]["max"].get<double>() == 123456789.012345);
  CHECK(result_json(comparison).find("123456789.012345") != std::string::npos);
}

TEST_CASE("result.json: there is no winner when nothing fits, and no NaN ever") {
  Comparison comparison = test::small_comparison();
  for (ScheduleResult& schedule : comparison.schedules) {
    schedule.iterations[0].fits = false;
    schedule.iterations[0].mfu = std::numeric_limits<double>::quiet_NaN();
  }
  const std::string text = result_json(comparison);
  CHECK(json::parse(text)["winner"].is_null());
  CHECK_FALSE(test::prints_nan(text));
  CHECK(json::parse(result_json(Comparison{}))["schedules"].empty());
}

TEST_CASE("result.json: hostile names stay inside their strings, repeated notes are kept") {
  Comparison comparison = test::hostile_comparison();
  comparison.schedules[0].notes = {{"K", "1"}, {"K", "2"}};
  const json result = json::parse(result_json(comparison));
  CHECK(result["schedules"][0]["name"].get<std::string>().starts_with("<script>alert(\"1\")"));
  CHECK(result["schedules"][0]["notes"]["K"] == "1; 2");
}

TEST_CASE("simulation: the same keys with plain numbers") {
  Comparison comparison = test::small_comparison();
  comparison.schedules.resize(1);
  comparison.schedules[0].iterations.resize(1);
  const json result = json::parse(simulation_json(comparison));
  CHECK(result["schema_version"] == 1);
  CHECK(result["inputs"]["model"] == "test");
  for (const std::string& key : kScheduleKeys) {
    CHECK_MESSAGE(result.contains(key), key);
  }
  CHECK(result["makespan_ms"] == 100.0);
  CHECK(result["iteration_time_ms"] == 110.0);
  CHECK(result["idle_by_cause_ms"]["transfer"] == 10.0);
  CHECK_THROWS_AS(simulation_json(test::small_comparison()), Error);
}
