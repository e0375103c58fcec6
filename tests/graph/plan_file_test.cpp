// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/plan_file.hpp"

#include "sim/core/error.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <string>

namespace dipsim {

namespace {

using test::error_of;
using test::GraphBuilder;
using test::ns;
using test::Passes;

/// Two ranks, a transfer each way, every table filled.
PlanFile small_plan() {
  GraphBuilder b(2);
  const Strategy keep{.f = ns(3), .b = ns(5), .f_to_i = Bytes{100}};
  const Strategy full{.mode = RecomputeMode::Full, .f = ns(3), .b = ns(8), .f_to_i = Bytes{10}};
  const PairId first = b.add_pair(RankId(0), Passes::Fused, {keep, full});
  const PairId second = b.add_pair(RankId(1), Passes::Fused, keep);
  b.add_pair_edges(first);
  b.add_pair_edges(second);
  b.add_transfer(b.f(first), b.f(second), ns(2), ns(1));
  b.add_transfer(b.b(second), b.b(first), ns(2));
  b.graph.model_flops = 1.5e12;
  b.graph.placement.notes.push_back({"K vit", "2 \"quoted\""});
  PlanFile plan{.name = "hand \\ made",
                .title = "two ranks",
                .provenance = {{"seed", "1"}},
                .cluster = {},
                .engine = {.lanes = LanePolicy::Rank, .host_issue = ns(7), .jitter = 0.25},
                .graph = b.graph,
                .schedule = {}};
  plan.schedule = b.schedule({{b.f(first), b.b(first)}, {b.f(second), b.b(second)}});
  plan.schedule.chosen[0] = StrategyId(1);
  return plan;
}

PlanFile reread(const std::string& text) {
  const JsonDocument document(text, "plan.json");
  return read_plan(document.root());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a plan file holds the windows of its offloads, and no key where there are none") {
  PlanFile plan = small_plan();
  CHECK(write_plan(plan).find("offloads") == std::string::npos);
  GraphBuilder b(1);
  const Strategy offload{.mode = RecomputeMode::Offload,
                         .f = ns(3),
                         .b = ns(5),
                         .copy = ns(4),
                         .f_to_i = Bytes{100},
                         .offload = Bytes{90}};
  const PairId away = b.add_pair(RankId(0), Passes::Fused, offload);
  const PairId between = b.add_pair(RankId(0), Passes::ForwardOnly, test::fused(9, 0));
  b.add_pair_edges(away);
  b.add_offload(away);
  plan.graph = b.graph;
  plan.schedule = b.schedule({{b.f(away), b.f(between), b.b(away)}});
  plan.schedule.offloads = {{away, b.f(between), b.f(between)}};
  const std::string text = write_plan(plan);
  CHECK(reread(text).schedule == plan.schedule);
  CHECK(write_plan(reread(text)) == text);
  const auto refused = [&](const std::string& to) {
    return error_of([&] { reread(replaced(text, "\"offloads\":[[0,2,2]]", to)); }).where();
  };
  CHECK(refused("\"offloads\":[[0,2]]").find("/schedule/offloads/0") != std::string::npos);
  CHECK(refused("\"offloads\":[[0,2,0]]").find("/offloads/0") != std::string::npos);
  CHECK(refused("\"comma\":[]").find("/schedule") != std::string::npos);
}

TEST_CASE("a plan file reads back as the plan that was written") {
  const PlanFile plan = small_plan();
  const PlanFile again = reread(write_plan(plan));
  CHECK(again.graph == plan.graph);
  CHECK(again.schedule == plan.schedule);
  CHECK(again.name == plan.name);
  CHECK(again.title == plan.title);
  CHECK(again.provenance == plan.provenance);
  CHECK(again.cluster == plan.cluster);
  CHECK(again.engine == plan.engine);
  CHECK(write_plan(again) == write_plan(plan));
}

TEST_CASE("a plan with its cluster keeps contention") {
  PlanFile plan = small_plan();
  plan.cluster = load_cluster("h100-16");
  plan.engine.contention = true;
  const PlanFile again = reread(write_plan(plan));
  CHECK(again.engine.contention);
  CHECK(again.cluster == plan.cluster);
}

TEST_CASE("a damaged plan file is refused with the place of the damage") {
  const std::string good = write_plan(small_plan());

  struct Damage {
    const char* from;
    const char* to;
    const char* named;
  };

  const Damage damages[] = {
      {"\"schema_version\": 1", "\"schema_version\": 7", "/schema_version"},
      {"\"title\"", "\"titel\"", "title"},
      {"\"op\", \"lane\"", "\"lane\", \"op\"", "/graph/tasks/columns"},
      {"[0,0,0,", "[0,0,0.5,", "/graph/tasks/rows/0"},
      {"[0,0,0,", "[99,0,0,", "/graph/tasks/rows/0"},
      {"[0,0,0,", "[0,0,-2,", "/graph/tasks/rows/0"},
      {"[0,0,0,", "[0,0,44,", "/tasks/0"},
      {"\"chosen\":[1,", "\"chosen\":[2,", "/chosen/0"},
      {"\"lanes\":\"rank\"", "\"lanes\":\"rink\"", "/engine/lanes"},
      {"\"jitter\":0.25", "\"jitter\":2", "/engine/jitter"},
      {"\"contention\":false", "\"contention\":0", "/engine/contention"},
      {"\"contention\":false", "\"contention\":true", "/engine: \"contention\" is true"},
      {"\"speed\":1.0", "\"speed\":0", "/graph/placement/ranks/0/speed"},
      {"\"model_flops\": 1500000000000.0", "\"model_flops\": -1", "/graph/model_flops"},
  };
  for (const Damage& damage : damages) {
    CAPTURE(damage.to);
    const Error error =
        error_of([&] { static_cast<void>(reread(replaced(good, damage.from, damage.to))); });
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(std::string(error.what()).find(damage.named) != std::string::npos);
  }
}

TEST_CASE("every truncation of a plan file is refused") {
  const std::string good = write_plan(small_plan());
  for (std::size_t length = 0; length + 2 < good.size(); length += 37) {
    CAPTURE(length);
    CHECK(error_of([&] { static_cast<void>(reread(good.substr(0, length))); }).kind() ==
          ErrorKind::Input);
  }
}

}  // namespace dipsim
