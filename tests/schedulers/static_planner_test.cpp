// SPDX-License-Identifier: Apache-2.0
#include "sim/core/error.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace dipsim;
using test::FakeCosts;

FakeCosts vlm(int depth, int replicas, bool vit_trained = true) {
  return FakeCosts({{"vit", 4, 1, vit_trained ? 1 : 0, vit_trained ? 1 : 0, vit_trained, {}},
                    {"lm", 4, 2, 2, 2, true, {ModuleId{0}}}},
                   depth, replicas);
}

TEST_CASE("schedules are found by name, and a wrong name is told the nearest") {
  CHECK(find_schedule("zb-h1").split_backward);
  CHECK(find_schedule("interleaved").default_chunks == 2);
  CHECK_THROWS_WITH_AS(find_schedule("1f1"), doctest::Contains("did you mean \"1f1b\"?"), Error);
}

TEST_CASE("every schedule in the table has its own name, a summary and a source") {
  std::vector<std::string_view> names;
  for (const ScheduleInfo& info : all_schedules()) {
    CAPTURE(info.name);
    CHECK_FALSE(info.summary.empty());
    CHECK_FALSE(info.source.empty());
    CHECK((info.make != nullptr));
    CHECK(std::ranges::find(names, info.name) == names.end());
    names.push_back(info.name);
  }
}

TEST_CASE("a placement has the stages of every replica in flow order with their memory") {
  const FakeCosts costs = vlm(2, 2);
  PlannerOptions options;
  options.chunks_per_rank = 2;
  const auto placement =
      find_schedule("interleaved").make(options)->place(costs, test::fake_batch({{{1}, {1}}}));
  REQUIRE(placement.chunks.size() == 8);
  for (int c = 0; c < 8; ++c) {
    const Chunk& chunk = placement.chunks[static_cast<std::size_t>(c)];
    const int stage = c % 4;
    CHECK(chunk.rank == RankId{c / 4 * 2 + stage % 2});
    CHECK(chunk.weight_set == stage);
    CHECK(chunk.layers == std::vector<LayerRange>{{ModuleId{stage / 2}, stage % 2 * 2, 2}});
    CHECK(chunk.weights == Bytes{4});
    CHECK(chunk.gradients == Bytes{8});
    CHECK(chunk.optimizer == Bytes{24});
  }
  CHECK(std::ranges::find(placement.notes, Note{"layers per stage", "2 2 2 2"}) !=
        placement.notes.end());
}

TEST_CASE("replicas are scheduled apart, each on its own microbatches") {
  const FakeCosts costs = vlm(2, 2);
  const Batch batch =
      test::fake_batch({{{1}, {1}}, {{2}, {2}}, {{3}, {3}}, {{4}, {4}}, {{5}, {5}}, {{6}, {6}}}, 2);
  CHECK(test::order_text(test::plan("1f1b", costs, batch)) ==
        "0F0 0F1 0B0 0F2 0B1 0B2\n"
        "1F0 1B0 1F1 1B1 1F2 1B2\n"
        "2F3 2F4 2B3 2F5 2B4 2B5\n"
        "3F3 3B3 3F4 3B4 3F5 3B5\n");
}

TEST_CASE("frozen layers have no backward to run") {
  const FakeCosts costs = vlm(2, 1, false);
  const Batch batch = test::fake_batch({{{1}, {1}}, {{1}, {1}}});
  PlannerOptions options;
  options.partition = PartitionRule::Given;
  options.given_layers = {4, 4};
  CHECK(test::order_text(test::plan("1f1b", costs, batch, options)) ==
        "0F0 0F1\n"
        "1F0 1B0 1F1 1B1\n");
  CHECK(test::order_text(test::plan("zb-h1", costs, batch, options)) ==
        "0F0 0F1\n"
        "1F0 1I0 1F1 1I1 1W0 1W1\n");
}

TEST_CASE("all pairs take the recompute mode that was asked for") {
  const FakeCosts costs = vlm(2, 1);
  const Batch batch = test::fake_batch({{{3}, {5}}, {{1}, {2}}});
  for (const RecomputeMode mode : {RecomputeMode::Keep, RecomputeMode::Full}) {
    PlannerOptions options;
    options.recompute = mode;
    const auto plan = test::plan("gpipe", costs, batch, options);
    for (const StrategyId chosen : plan.schedule.chosen) {
      CHECK(plan.graph.strategy(chosen).mode == mode);
    }
  }
}

TEST_CASE("more chunks than a schedule has are refused before anything is planned") {
  PlannerOptions options;
  options.chunks_per_rank = 3;
  for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
    CHECK_THROWS_WITH_AS(find_schedule(name).make(options),
                         doctest::Contains("allowed: 1; nearest legal: 1"), Error);
  }
  options.chunks_per_rank = -1;
  CHECK_THROWS_AS(find_schedule("interleaved").make(options), Error);
}

TEST_CASE("a cut by time may be one of those that fit in memory") {
  const FakeCosts costs({{"lm", 6, 1, 1, 1, true, {}}}, 2);  // 2^40 bytes per rank
  const Batch heavy = test::fake_batch({{{2'000'000'000}}, {{2'000'000'000}}});
  PlannerOptions options;
  for (const char* name : {"1f1b", "zb-1p", "zb-2p", "dynapipe"}) {
    CAPTURE(name);
    options.activation_percent = 0;
    CHECK(find_schedule(name).make(options)->place(costs, heavy).notes[2].text == "3 3");
    options.activation_percent = 10'000;  // 2e11 a layer: 2 layers in flight twice, 5 once
    const auto notes = find_schedule(name).make(options)->place(costs, heavy).notes;
    CHECK(notes[1] ==
          Note{"partition by", "time, of the cuts that fit with activations at 10000 %"});
    CHECK(notes[2] == Note{"layers per stage", "2 4"});
    const FakeCosts longer({{"lm", 9, 1, 1, 1, true, {}}}, 2);
    CHECK_THROWS_WITH_AS((void)find_schedule(name).make(options)->place(longer, heavy),
                         doctest::Contains("no cut of the layers"), Error);
  }
  CHECK_THROWS_WITH_AS((void)find_schedule("zb-v").make(options)->place(costs, heavy),
                       doctest::Contains("for one chunk per rank only"), Error);
}

TEST_CASE("orders that depend on memory try several cuts that fit, where cuts by time differ") {
  const FakeCosts costs({{"lm", 6, 1, 1, 1, true, {}}}, 2);
  for (const char* name : {"zb-1p", "zb-2p", "dynapipe"}) {
    CAPTURE(name);
    const ScheduleInfo& info = find_schedule(name);
    REQUIRE((info.alternatives != nullptr));
    std::vector<int> percents;
    for (const PlannerOptions& alternative : info.alternatives({}, costs.problem())) {
      percents.push_back(alternative.activation_percent);
    }
    CHECK(percents == std::vector<int>{0, 100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200});
    PlannerOptions by_parameters;
    by_parameters.partition = PartitionRule::Parameters;
    CHECK(info.alternatives(by_parameters, costs.problem()).size() == 1);
    const FakeCosts one_cut({{"lm", 2, 1, 1, 1, true, {}}}, 2);
    CHECK(info.alternatives({}, one_cut.problem()).size() == 1);
  }
}

TEST_CASE("a graph that another schedule has placed is refused") {
  const auto plan = test::plan("interleaved", test::pipeline(2, 4, 2, 1, 1, 1));
  CHECK_THROWS_AS((void)find_schedule("1f1b").make({})->order(plan.graph), Error);
}

TEST_CASE("a rank of several cells has its order on each of them, a shared cell is refused") {
  const auto spec = test::pipeline(2, 2, 1, 1, 1, 1);
  auto plan = test::plan("1f1b", spec);
  plan.graph.placement.cells.add_row();
  plan.graph.placement.ranks[1].cells = {CellId{1}, CellId{2}};
  const auto planner = find_schedule("1f1b").make({});
  const Schedule schedule = planner->order(plan.graph);
  CHECK_NOTHROW(validate(plan.graph, schedule));
  REQUIRE(schedule.compute.size() == 3);
  CHECK(std::ranges::equal(schedule.compute[1], schedule.compute[2]));

  plan.graph.placement.ranks[1].cells = {CellId{0}};
  CHECK_THROWS_WITH_AS((void)planner->order(plan.graph), doctest::Contains("ranks 0 and 1 share"),
                       Error);
}

}  // namespace
