// SPDX-License-Identifier: Apache-2.0
#include "schedulers/partition.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/analysis.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

namespace {

using namespace dipsim;
using test::FakeCosts;

std::vector<std::int64_t> sums_of(const std::vector<std::int64_t>& weights,
                                  const std::vector<int>& sizes) {
  std::vector<std::int64_t> sums;
  auto next = weights.begin();
  for (const int size : sizes) {
    sums.push_back(0);
    for (int i = 0; i < size; ++i) {
      sums.back() += *next++;
    }
  }
  return sums;
}

/// All ways to cut `items` into `parts` runs of at least one.
void each_cut(int items, int parts, std::vector<int>& sizes, const auto& visit) {
  if (parts == 1) {
    sizes.push_back(items);
    visit(sizes);
    sizes.pop_back();
    return;
  }
  for (int size = 1; size <= items - parts + 1; ++size) {
    sizes.push_back(size);
    each_cut(items - size, parts - 1, sizes, visit);
    sizes.pop_back();
  }
}

TEST_CASE("a balanced partition is the first in (largest sum, - smallest sum, sizes) of all cuts") {
  CHECK(rc::check([] {
    const auto weights = *rc::gen::suchThat(
        rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 20)),
        [](const auto& values) { return !values.empty() && values.size() <= 11; });
    const int items = static_cast<int>(weights.size());
    const int parts = *rc::gen::inRange(1, items + 1);
    using Rank = std::tuple<std::int64_t, std::int64_t, std::vector<int>>;
    Rank best{std::numeric_limits<std::int64_t>::max(), 0, {}};
    std::vector<int> sizes;
    each_cut(items, parts, sizes, [&](const std::vector<int>& cut) {
      const auto sums = sums_of(weights, cut);
      best = std::min(best, Rank{std::ranges::max(sums), -std::ranges::min(sums), cut});
    });
    RC_ASSERT(balanced_partition(weights, parts) == std::get<2>(best));
  }));
}

TEST_CASE("with limits on the runs, it is the first of all cuts that keep to them") {
  int cuts_found = 0;
  CHECK(rc::check([&] {
    const auto weights = *rc::gen::suchThat(
        rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 20)),
        [](const auto& values) { return !values.empty() && values.size() <= 9; });
    const auto items = weights.size();
    const int parts = *rc::gen::inRange(1, static_cast<int>(items) + 1);
    RunEnds ends;
    for (int part = 0; part < parts; ++part) {
      std::vector<std::size_t> row;
      for (std::size_t i = 0; i < items; ++i) {
        const auto length = *rc::gen::inRange<std::size_t>(0, items + 1);
        row.push_back(std::max(row.empty() ? 0 : row.back(), std::min(items, i + length)));
      }
      ends.push_back(row);
    }
    using Rank = std::tuple<std::int64_t, std::int64_t, std::vector<int>>;
    Rank best{std::numeric_limits<std::int64_t>::max(), 0, {}};
    std::vector<int> sizes;
    each_cut(static_cast<int>(items), parts, sizes, [&](const std::vector<int>& cut) {
      std::size_t begin = 0;
      for (std::size_t part = 0; part < cut.size(); ++part) {
        const std::size_t end = begin + static_cast<std::size_t>(cut[part]);
        if (end > ends[part][begin]) {
          return;
        }
        begin = end;
      }
      const auto sums = sums_of(weights, cut);
      best = std::min(best, Rank{std::ranges::max(sums), -std::ranges::min(sums), cut});
    });
    const auto found = balanced_partition(weights, ends);
    RC_ASSERT(found.has_value() == !std::get<2>(best).empty());
    if (found) {
      ++cuts_found;
      RC_ASSERT(*found == std::get<2>(best));
    }
  }));
  CHECK(cuts_found > 20);
}

TEST_CASE("equal layers that do not divide evenly give the later stages one more") {
  const std::vector<std::int64_t> weights(11, 5);
  CHECK(balanced_partition(weights, 4) == std::vector<int>{2, 3, 3, 3});
}

TEST_CASE("fewer layers than stages are refused") {
  const std::vector<std::int64_t> weights(3, 1);
  CHECK_THROWS_WITH_AS(balanced_partition(weights, 4),
                       "partition: 3 layers can't make 4 stages of at least one layer; allowed: 1 "
                       "to 3 stages (ranks × chunks per rank)",
                       Error);
  CHECK(balanced_partition(weights, 3) == std::vector<int>{1, 1, 1});
}

/// arXiv 2504.14145, motivation: ViT 5B and LM 32B of 64 layers each; a ViT layer takes 6.75 ms
/// forward and backward, an LM layer 10.5 ms. Times in microseconds, backward twice the forward.
FakeCosts vlm_37b(int depth) {
  return FakeCosts({{"vit", 64, 2250, 2250, 2250, true, {}, 67e6},
                    {"lm", 64, 3500, 3500, 3500, true, {ModuleId{0}}, 487e6}},
                   depth);
}

Batch vlm_batch(int microbatches) {
  return test::fake_batch(std::vector<test::FakeMicrobatch>(static_cast<std::size_t>(microbatches),
                                                            test::FakeMicrobatch{{1}, {1}}));
}

/// 6 × 67.5, 69, 3 × 63 and 6 × 73.5 ms.
const std::vector<int> kPublished = {10, 10, 10, 10, 10, 10, 8, 6, 6, 6, 7, 7, 7, 7, 7, 7};

TEST_CASE("the 37B example: stages take 63 to 73.5 ms, as the exhaustive search of DIP found") {
  const FakeCosts costs = vlm_37b(16);
  const auto times = layer_times(costs, vlm_batch(1), RecomputeMode::Keep);
  REQUIRE(times.size() == 128);
  CHECK(times[63] == 6750);
  CHECK(times[64] == 10500);
  const auto counts = balanced_partition(times, 16);
  CHECK(counts == kPublished);
  const auto sums = sums_of(times, counts);
  CHECK(std::ranges::max(sums) == 73500);
  CHECK(std::ranges::min(sums) == 63000);
}

TEST_CASE("the 37B example under 1F1B with 64 microbatches: 5734.5 ms, 22.99 % bubble") {
  class Free final : public FakeCosts {
   public:
    using FakeCosts::FakeCosts;

    [[nodiscard]] TransferCost transfer(const Chunk&, const Chunk&, const Work&, const Work&,
                                        const Batch&) const override {
      return {};
    }
  };

  const Free costs({{"vit", 64, 2250, 2250, 2250, true, {}, 67e6},
                    {"lm", 64, 3500, 3500, 3500, true, {ModuleId{0}}, 487e6}},
                   16);
  for (const PartitionRule rule : {PartitionRule::Given, PartitionRule::PassTime}) {
    PlannerOptions options;
    options.partition = rule;
    options.given_layers = kPublished;
    const auto plan = test::plan("1f1b", costs, vlm_batch(64), options);
    const Timeline timeline = test::timeline(plan);
    CHECK(timeline.makespan == Duration{5734500});
    CHECK(analyze(plan.graph, plan.schedule, timeline).bubble_ratio ==
          doctest::Approx(0.2299).epsilon(0.0002));
  }
}

TEST_CASE("balancing parameters gives the ViT fewer stages than balancing time") {
  const FakeCosts costs = vlm_37b(16);
  const auto counts = balanced_partition(layer_parameters(costs.problem()), 16);
  const auto vit_stages = [](const std::vector<int>& sizes) {
    int layers = 0;
    int stages = 0;
    for (; layers + sizes[static_cast<std::size_t>(stages)] <= 64; ++stages) {
      layers += sizes[static_cast<std::size_t>(stages)];
    }
    return stages;
  };
  // 4.3 B of 35.5 B parameters, in stages of at most five LM layers (2.4 B): two stages.
  CHECK(vit_stages(counts) == 2);
  CHECK(vit_stages(kPublished) == 6);
}

TEST_CASE("layer times add up the microbatches and the recomputation of the mode") {
  const FakeCosts costs({{"lm", 2, 10, 20, 30, true, {}}}, 1);
  const Batch batch = test::fake_batch({{{1}}, {{4}}});
  CHECK(layer_times(costs, batch, RecomputeMode::Keep) == std::vector<std::int64_t>{300, 300});
  CHECK(layer_times(costs, batch, RecomputeMode::Selective) ==
        std::vector<std::int64_t>{350, 350});  // there is none: full
  CHECK(layer_times(costs, batch, RecomputeMode::Offload) == std::vector<std::int64_t>{350, 350});
}

TEST_CASE("stages may span modules, and take every layer once") {
  const FakeCosts costs({{"vit", 3, 1, 1, 1, true, {}},
                         {"projector", 1, 1, 1, 1, true, {ModuleId{0}}},
                         {"lm", 4, 1, 1, 1, true, {ModuleId{1}}}},
                        2);
  const std::vector<int> counts = {2, 4, 2};
  const auto stages = stage_layers(costs.problem(), counts, 3);
  using Ranges = std::vector<LayerRange>;
  REQUIRE(stages.size() == 3);
  CHECK(stages[0] == Ranges{{ModuleId{0}, 0, 2}});
  CHECK(stages[1] == Ranges{{ModuleId{0}, 2, 1}, {ModuleId{1}, 0, 1}, {ModuleId{2}, 0, 2}});
  CHECK(stages[2] == Ranges{{ModuleId{2}, 2, 2}});
}

TEST_CASE("given layer counts that lose or invent layers are refused") {
  const FakeCosts costs({{"lm", 46, 1, 1, 1, true, {}}}, 2);
  const std::vector<int> lost = {23, 22};
  CHECK_THROWS_WITH_AS(stage_layers(costs.problem(), lost, 2),
                       "layers per stage: the counts add up to 45, but the model has 46 layers: "
                       "add 1",
                       Error);
  const std::vector<int> invented = {23, 24};
  CHECK_THROWS_WITH_AS(stage_layers(costs.problem(), invented, 2), doctest::Contains("remove 1"),
                       Error);
  const std::vector<int> empty = {46, 0};
  CHECK_THROWS_WITH_AS(stage_layers(costs.problem(), empty, 2),
                       "layers per stage: stage 1: 0 layers; allowed: 1 to 46", Error);
  CHECK_THROWS_WITH_AS(stage_layers(costs.problem(), lost, 4),
                       "layers per stage: 2 counts; allowed: 4 (ranks × chunks per rank)", Error);
}

}  // namespace
