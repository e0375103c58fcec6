// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/deal.hpp"
#include "schedulers/static/disttrain_sizes.hpp"
#include "schedulers/static/group_sizes.hpp"
#include "sim/core/error.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/models/shipped_models.hpp"
#include "tests/schedulers/free_transfers.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace dipsim;
using test::FakeModule;
using test::FreeTransfers;

FakeModule encoder(int layers, std::int64_t f, std::int64_t b) {
  return {"vit", layers, f, b, 0, true, {}};
}

FakeModule backbone(int layers, std::int64_t f, std::int64_t b) {
  return {"lm", layers, f, b, 0, true, {ModuleId{0}}};
}

/// So many microbatches of so many images of one token, and one text of one token.
Batch image_batch(std::size_t microbatches, std::size_t images, int replicas = 1) {
  return test::fake_batch(
      std::vector<test::FakeMicrobatch>(
          microbatches, test::FakeMicrobatch{std::vector<std::int32_t>(images, 1), {1}}),
      replicas);
}

Duration makespan_of(const test::StaticPlan& plan) {
  return simulate(plan.graph, plan.schedule).makespan;
}

/// Every combination of options whose GPUs add up.
std::optional<Duration> least_by_enumeration(const SizingProblem& problem) {
  std::optional<Duration> least;
  std::vector<std::size_t> rows(problem.options.size(), 0);
  for (;;) {
    int gpus = 0;
    for (std::size_t m = 0; m < rows.size(); ++m) {
      gpus += problem.options[m][rows[m]].group.gpus();
    }
    if (gpus == problem.gpus) {
      const Duration time = joined_time(problem, rows);
      least = least ? std::min(*least, time) : time;
    }
    std::size_t m = 0;
    while (m < rows.size() && ++rows[m] == problem.options[m].size()) {
      rows[m++] = 0;
    }
    if (m == rows.size()) {
      return least;
    }
  }
}

SizingProblem random_sizes() {
  SizingProblem problem;
  const int modules = *rc::gen::inRange(1, 4);
  problem.gpus = *rc::gen::inRange(modules, 13);
  problem.steps = *rc::gen::inRange(1, 9);
  for (int m = 0; m < modules; ++m) {
    std::vector<ModuleId> inputs;
    for (int input = 0; input < m; ++input) {
      if (*rc::gen::arbitrary<bool>()) {
        inputs.emplace_back(input);
      }
    }
    problem.inputs.push_back(inputs);
    std::vector<GroupOption>& options = problem.options.emplace_back();
    for (int k = *rc::gen::inRange(1, 8); k > 0; --k) {
      const Duration slowest{*rc::gen::inRange(0, 9)};
      options.push_back({.group = {.tp = *rc::gen::element(1, 2, 4),
                                   .pp = *rc::gen::inRange(1, 4),
                                   .copies = *rc::gen::inRange(1, 3)},
                         .slowest = slowest,
                         .all = slowest + Duration{*rc::gen::inRange(0, 9)}});
    }
  }
  if (*rc::gen::arbitrary<bool>()) {  // a number that some combination adds up to
    problem.gpus = 0;
    for (const std::vector<GroupOption>& options : problem.options) {
      problem.gpus += options[*rc::gen::inRange<std::size_t>(0, options.size())].group.gpus();
    }
  }
  return problem;
}

}  // namespace

TEST_CASE("disttrain: the sizes found take all GPUs, and no others that do take less time") {
  int solved = 0;
  CHECK(rc::check([&] {
    const SizingProblem problem = random_sizes();
    const auto found = best_sizes(problem);
    const auto least = least_by_enumeration(problem);
    RC_ASSERT(found.has_value() == least.has_value());
    if (found) {
      ++solved;
      RC_ASSERT(joined_time(problem, *found) == *least);
    }
  }));
  CHECK(solved > 20);
}

TEST_CASE("disttrain: sizes that do not fit give way to the next best") {
  const SizingProblem problem{
      .options = {{{.group = {.pp = 1}, .slowest = Duration{8}, .all = Duration{8}},
                   {.group = {.pp = 2}, .slowest = Duration{4}, .all = Duration{8}}},
                  {{.group = {.pp = 2}, .slowest = Duration{3}, .all = Duration{6}},
                   {.group = {.pp = 1}, .slowest = Duration{6}, .all = Duration{6}}}},
      .inputs = {{}, {ModuleId{0}}},
      .gpus = 3,
      .steps = 10};
  CHECK(best_sizes(problem) == std::vector<std::size_t>{1, 1});
  CHECK(joined_time(problem, std::vector<std::size_t>{1, 1}) == Duration{14 + 9 * 6});
  const auto short_of = [](std::span<const std::size_t> rows) { return rows[0] == 0; };
  CHECK(best_sizes(problem, short_of) == std::vector<std::size_t>{0, 0});
  CHECK(best_sizes(problem, [](std::span<const std::size_t>) { return false; }) == std::nullopt);
}

// Encoder 12 per image and layer set, backbone 6 per text: of 3 GPUs the encoder needs two.
TEST_CASE(
    "disttrain: a module with twice the work gets twice the GPUs, and the makespan is Σ + (m "
    "- 1) max") {
  const FreeTransfers costs({encoder(2, 2, 4), backbone(1, 2, 4)}, 3);
  const int m = 5;
  const Batch batch = image_batch(m, 1);
  const SizedGroups sized = size_groups(costs, batch, RecomputeMode::Keep, 0);
  CHECK(sized.groups == std::vector<ModuleGroup>{{.pp = 2}, {.pp = 1}});
  CHECK(sized.microbatches == 1);
  CHECK(sized.time == Duration{3 * 6 + (m - 1) * 6});
  const auto plan = test::plan("disttrain", costs, batch);
  CHECK(makespan_of(plan) == sized.time);
  CHECK(test::order_text(plan) ==
        "0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0B3 0B4\n"
        "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1F4 1B3 1B4\n"
        "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4\n");
}

// One layer can't be cut, but four images can be dealt: copies shorten a step, and the way too.
TEST_CASE("disttrain: copies share the images of a microbatch") {
  const FreeTransfers costs({encoder(1, 1, 2), backbone(1, 2, 4)}, 3);
  const int m = 4;
  const Batch batch = image_batch(m, 4);
  const SizedGroups sized = size_groups(costs, batch, RecomputeMode::Keep, 0);
  CHECK(sized.groups == std::vector<ModuleGroup>{{.copies = 2}, {.copies = 1}});
  CHECK(sized.time == Duration{2 * 6 + (m - 1) * 6});
  const auto plan = test::plan("disttrain", costs, batch);
  CHECK(makespan_of(plan) == sized.time);
  const auto of_copy = [&](int copy) {
    return std::ranges::count_if(plan.graph.works, [&](const Work& work) {
      return work.module == ModuleId{0} && work.copy == copy;
    });
  };
  CHECK(of_copy(0) == m);
  CHECK(of_copy(1) == m);
}

// A text can't be divided: two backbone copies work on two microbatches, fed by one encoder.
TEST_CASE("disttrain: copies of a backbone take a microbatch each") {
  const FreeTransfers costs({encoder(1, 1, 2), backbone(1, 2, 4)}, 3);
  const Batch batch = image_batch(8, 1);
  const SizedGroups sized = size_groups(costs, batch, RecomputeMode::Keep, 0);
  CHECK(sized.groups == std::vector<ModuleGroup>{{.copies = 1}, {.copies = 2}});
  CHECK(sized.microbatches == 2);
  CHECK(sized.time == Duration{2 * 6 + 3 * 6});
  CHECK(makespan_of(test::plan("disttrain", costs, batch)) == sized.time);
}

TEST_CASE("disttrain: on equal steps the makespan is at most what the sizes were chosen for") {
  CHECK(rc::check([] {
    const int gpus = *rc::gen::inRange(2, 7);
    const auto time = [] { return *rc::gen::inRange<std::int64_t>(0, 9); };
    const FreeTransfers costs({encoder(*rc::gen::inRange(1, 7), time(), time()),
                               backbone(*rc::gen::inRange(1, 7), time(), time())},
                              gpus);
    const Batch batch =
        image_batch(*rc::gen::inRange<std::size_t>(1, 9), *rc::gen::inRange<std::size_t>(1, 5));
    const SizedGroups sized = size_groups(costs, batch, RecomputeMode::Keep, 0);
    int used = 0;
    for (const ModuleGroup& group : sized.groups) {
      used += group.gpus();
    }
    RC_ASSERT(used == gpus);
    RC_ASSERT(makespan_of(test::plan("disttrain", costs, batch)) <= sized.time);
  }));
}

TEST_CASE("disttrain: the longest instances are dealt first, each to the copy with least") {
  const FreeTransfers costs({encoder(1, 1, 0), backbone(1, 1, 0)}, 2);
  const Batch batch = test::fake_batch({{{3, 5}, {1}}, {{4, 2, 7}, {1}}});
  InstanceTimes times(costs, batch, RecomputeMode::Keep);
  // 7 to copy 0, 5 and 4 to copy 1, 3 to copy 0, 2 to copy 1.
  const auto dealt = deal(batch, {MicrobatchId{0}, MicrobatchId{1}}, ModuleId{0}, 2, times);
  CHECK(dealt[0] == std::vector<Portion>{{MicrobatchId{0}, 0, 1}, {MicrobatchId{1}, 2, 1}});
  CHECK(dealt[1] == std::vector<Portion>{{MicrobatchId{0}, 1, 1}, {MicrobatchId{1}, 0, 2}});
}

TEST_CASE("disttrain: steps hold the microbatches of one replica, the last one what is left") {
  Batch batch = test::fake_batch({{{1}}, {{1}}, {{1}}, {{1}}, {{1}}});
  batch.replica = {0, 0, 0, 1, 1};
  const auto steps = steps_of(batch, 2, 2);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0] ==
        std::vector<MicrobatchStep>{{MicrobatchId{0}, MicrobatchId{1}}, {MicrobatchId{2}}});
  CHECK(steps[1] == std::vector<MicrobatchStep>{{MicrobatchId{3}, MicrobatchId{4}}});
}

TEST_CASE("disttrain: fewer GPUs than modules are refused") {
  const FreeTransfers costs({encoder(4, 1, 1), backbone(4, 1, 1)}, 1);
  CHECK_THROWS_WITH_AS((void)test::plan("disttrain", costs, image_batch(2, 1)),
                       doctest::Contains("2 modules on 1 GPUs per replica; each needs GPUs of its "
                                         "own: at least 2"),
                       Error);
}

TEST_CASE(
    "disttrain: every GPU of the job has one rank, and no tensor-parallel group crosses nodes") {
  for (const char* name : {"vlm-s", "t2v-s"}) {
    CAPTURE(name);
    const LmmModel model = load_model(name);
    const ModelLowering lowering(model, load_cluster("h800-64"), {.tp = 4, .pp = 4, .dp = 2});
    const bool vlm = model.feeds().back() == Feed::Sequence;
    Batch batch = vlm ? test::images(model, {24, 48, 8, 40}) : test::clips(model);
    if (vlm) {
      batch.replica = {0, 0, 1, 1};
    }
    const auto plan = test::plan("disttrain", lowering, batch);
    std::set<GpuId> used;
    for (std::size_t cell = 0; cell < plan.graph.placement.cells.size(); ++cell) {
      const auto gpus = plan.graph.placement.cells[cell];
      used.insert(gpus.begin(), gpus.end());
      CHECK(gpus.front().value / 8 == gpus.back().value / 8);
    }
    CHECK(used.size() == 32);
    CHECK(used.rbegin()->value == 31);
    std::size_t counted = 0;
    for (const Rank& rank : plan.graph.placement.ranks) {
      counted += static_cast<std::size_t>(rank.tp);
    }
    CHECK(counted == 32);
  }
}
