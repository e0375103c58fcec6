// SPDX-License-Identifier: Apache-2.0
#include "sim/core/error.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using namespace dipsim;
using test::FakeCosts;

/// Least possible largest sum of `parts` consecutive runs, by the recurrence of nnScaler's solver:
/// T[s][i] = min over j of max(T[s-1][j], sum of items j .. i-1).
std::int64_t least_largest(const std::vector<std::int64_t>& items, int parts) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> best(items.size() + 1, kNever);
  best[0] = 0;
  for (int part = 0; part < parts; ++part) {
    std::vector<std::int64_t> next(items.size() + 1, kNever);
    for (std::size_t i = 1; i <= items.size(); ++i) {
      std::int64_t sum = 0;
      for (std::size_t j = i; j-- > 0;) {
        sum += items[j];
        next[i] = std::min(next[i], std::max(best[j], sum));
      }
    }
    best = next;
  }
  return best.back();
}

/// Time of F and B of each stage on the batch, under a mode, costed stage by stage.
std::vector<std::int64_t> stage_times(const FakeCosts& costs, const Placement& placement,
                                      const Batch& batch, RecomputeMode mode) {
  std::vector<std::int64_t> times;
  for (const Chunk& chunk : placement.chunks) {
    times.push_back(0);
    for (std::size_t m = 0; m < batch.microbatches(); ++m) {
      const Work work{.portions = {{.microbatch = MicrobatchId(m)}}};
      const auto strategies = costs.costs(chunk.layers, work, batch);
      const Strategy& strategy = strategies[uniform_strategy(strategies, mode)];
      times.back() += (strategy.f + strategy.b).count();
    }
  }
  return times;
}

Batch random_batch(int microbatches) {
  std::vector<test::FakeMicrobatch> all;
  all.reserve(static_cast<std::size_t>(microbatches));
  for (int m = 0; m < microbatches; ++m) {
    all.push_back({{*rc::gen::inRange(0, 30)}, {*rc::gen::inRange(1, 10)}});
  }
  return test::fake_batch(all);
}

FakeCosts random_costs(int ranks) {
  const auto module = [](const char* name, std::vector<ModuleId> inputs) {
    return test::FakeModule{name,
                            *rc::gen::inRange(1, 9),
                            *rc::gen::inRange(1, 9),
                            *rc::gen::inRange(0, 9),
                            *rc::gen::inRange(0, 9),
                            true,
                            std::move(inputs)};
  };
  return FakeCosts({module("vit", {}), module("lm", {ModuleId{0}})}, ranks);
}

Placement placed(const FakeCosts& costs, const Batch& batch, RecomputeMode mode) {
  PlannerOptions options;
  options.recompute = mode;
  options.partition = PartitionRule::Parameters;  // has no meaning for nnscaler
  return find_schedule("nnscaler").make(options)->place(costs, batch);
}

TEST_CASE("nnscaler: no other cut has a faster slowest stage, under keep and under full") {
  CHECK(rc::check([] {
    const int ranks = *rc::gen::inRange(1, 5);
    const FakeCosts costs = random_costs(ranks);
    RC_PRE(costs.problem().modules[0].layers + costs.problem().modules[1].layers >= ranks);
    const Batch batch = random_batch(3);
    for (const RecomputeMode mode : {RecomputeMode::Keep, RecomputeMode::Full}) {
      const auto own = stage_times(costs, placed(costs, batch, mode), batch, mode);
      RC_ASSERT(static_cast<int>(own.size()) == ranks);
      RC_ASSERT(std::ranges::max(own) == least_largest(layer_times(costs, batch, mode), ranks));
    }
  }));
}

TEST_CASE("nnscaler: tuned on a batch, its slowest stage is never slower than tuned on another") {
  CHECK(rc::check([] {
    const int ranks = *rc::gen::inRange(1, 4);
    const FakeCosts costs = random_costs(ranks);
    RC_PRE(costs.problem().modules[0].layers + costs.problem().modules[1].layers >= ranks);
    const Batch representative = random_batch(2);
    const Batch batch = random_batch(2);
    for (const RecomputeMode mode : {RecomputeMode::Keep, RecomputeMode::Full}) {
      const auto tuned = stage_times(costs, placed(costs, batch, mode), batch, mode);
      const auto other = stage_times(costs, placed(costs, representative, mode), batch, mode);
      RC_ASSERT(std::ranges::max(tuned) <= std::ranges::max(other));
    }
  }));
}

TEST_CASE("nnscaler: a memory that no cut keeps to is infeasible, one that some do is kept") {
  const FakeCosts costs({{"lm", 6, 1, 1, 1, true, {}}}, 2);  // 2^40 bytes per rank
  const Batch small = test::fake_batch({{{1}}});
  const Batch large = test::fake_batch({{{1'000'000'000}}, {{1'000'000'000}}});
  PlannerOptions options;
  options.activation_percent = 10'000;  // as if 1.1e10 bytes: 5 layers in flight twice, 10 once
  const auto layers = [&](const Batch& batch) {
    const auto notes = find_schedule("nnscaler").make(options)->place(costs, batch).notes;
    return std::ranges::find(notes, "layers per stage", &Note::name)->text;
  };
  CHECK(layers(small) == "3 3");
  CHECK(layers(large) == "3 3");
  const Batch heavier = test::fake_batch({{{2'000'000'000}}, {{2'000'000'000}}});
  CHECK(layers(heavier) == "2 4");  // 2 layers twice, 5 once
  const Batch heaviest =
      test::fake_batch({{{2'147'000'000}}, {{2'147'000'000}}, {{2'147'000'000}}});
  options.activation_percent = 0;
  CHECK(layers(heaviest) == "3 3");
  const FakeCosts longer({{"lm", 9, 1, 1, 1, true, {}}}, 2);
  options.activation_percent = 10'000;
  CHECK_THROWS_WITH_AS((void)find_schedule("nnscaler").make(options)->place(longer, heaviest),
                       doctest::Contains("no cut of the layers"), Error);
}

TEST_CASE("nnscaler runs 1f1b") {
  CHECK(test::order_text(test::plan("nnscaler", test::pipeline(3, 5, 1, 1, 1, 1))) ==
        test::order_text(test::plan("1f1b", test::pipeline(3, 5, 1, 1, 1, 1))));
}

}  // namespace
