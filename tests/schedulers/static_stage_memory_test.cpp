// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/stage_memory.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace dipsim;

/// Ranks with this limit and reserve. A layer has 18 bytes of state; under keep it holds a byte per
/// token from F to B, under full it rebuilds that much in B.
class Limited final : public test::FakeCosts {
 public:
  Limited(std::vector<test::FakeModule> modules, int depth, std::int64_t limit,
          std::int64_t reserved, int replicas = 1)
      : FakeCosts(std::move(modules), depth, replicas), limited_(FakeCosts::problem()) {
    for (Rank& rank : limited_.ranks) {
      rank.memory_limit = Bytes{limit};
      rank.reserved = Bytes{reserved};
    }
  }

  [[nodiscard]] const Problem& problem() const override { return limited_; }

  [[nodiscard]] Bytes transient(std::span<const LayerRange> /*layers*/, const Work& /*work*/,
                                const Batch& /*batch*/) const override {
    return Bytes{0};
  }

 private:
  Problem limited_;
};

// Tokens 1, 4, 2: rank 0 has 2 microbatches in flight, at most 6 bytes per layer, rank 1 has one,
// at most 4. With 10 reserved of 100, 3 layers of 24 fit on rank 0 (72 of 90), 4 of 22 on rank 1.
TEST_CASE("a stage of 1F1B ends where state and microbatches in flight fill the memory") {
  const Limited costs({{"lm", 6, 1, 1, 1, true, {}}}, 2, 100, 10);
  const Batch batch = test::fake_batch({{{1}}, {{4}}, {{2}}});
  using Ends = std::vector<std::size_t>;
  const RunEnds keep = stage_ends(costs, batch, RecomputeMode::Keep, 100);
  REQUIRE(keep.size() == 2);
  CHECK(keep[0] == Ends{3, 4, 5, 6, 6, 6});
  CHECK(keep[1] == Ends{4, 5, 6, 6, 6, 6});
  // At 250 % a layer needs 18 + 15 on rank 0 and 18 + 10 on rank 1.
  const RunEnds more = stage_ends(costs, batch, RecomputeMode::Keep, 250);
  CHECK(more[0] == Ends{2, 3, 4, 5, 6, 6});
  CHECK(more[1] == Ends{3, 4, 5, 6, 6, 6});
  // Under full a stage rebuilds 4 bytes of one layer: 4 · 18 + 4 fit in 90; at 500 % 3 · 18 + 20.
  CHECK(stage_ends(costs, batch, RecomputeMode::Full, 100)[0] == Ends{4, 5, 6, 6, 6, 6});
  CHECK(stage_ends(costs, batch, RecomputeMode::Full, 500)[0] == Ends{3, 4, 5, 6, 6, 6});
  // 24 bytes are one layer on rank 0, 23 none; less than the reserve is none anywhere.
  const auto with_limit = [&](std::int64_t limit) {
    const Limited small({{"lm", 6, 1, 1, 1, true, {}}}, 2, limit, 10);
    return stage_ends(small, batch, RecomputeMode::Keep, 100);
  };
  CHECK(with_limit(34)[0] == Ends{1, 2, 3, 4, 5, 6});
  CHECK(with_limit(33)[0] == Ends{0, 1, 2, 3, 4, 5});
  CHECK(with_limit(33)[1] == Ends{1, 2, 3, 4, 5, 6});
  CHECK(with_limit(5)[1] == Ends{0, 1, 2, 3, 4, 5});
}

/// From I to W a layer holds three bytes per token, two more than before I.
class Split final : public test::FakeCosts {
 public:
  using FakeCosts::FakeCosts;

  [[nodiscard]] std::vector<Strategy> costs(std::span<const LayerRange> layers, const Work& work,
                                            const Batch& batch) const override {
    std::vector<Strategy> strategies = FakeCosts::costs(layers, work, batch);
    strategies.front().i_to_w = 3 * strategies.front().f_to_i;
    return strategies;
  }
};

// The two ranks have 2^40 bytes and no reserve. Of 10^10 times 1, 4 and 2 bytes per layer, rank 0
// has at most 6 in flight, rank 1 at most 4, and with a split one microbatch 8 more on either.
TEST_CASE("with a split backward, a stage also has room for one microbatch from I to W") {
  const Split costs({{"lm", 40, 1, 1, 1, true, {}}}, 2);
  const int unit = 100'000'000;
  const Batch batch = test::fake_batch({{{unit}}, {{4 * unit}}, {{2 * unit}}});
  const auto first_ends = [&](bool split) {
    const RunEnds ends = stage_ends(costs, batch, RecomputeMode::Keep, 10'000, split);
    return std::pair(ends[0].front(), ends[1].front());
  };
  const auto room = static_cast<std::size_t>((std::int64_t{1} << 40U) / unit / 100);
  CHECK(first_ends(false) == std::pair(room / 6, room / 4));
  CHECK(first_ends(true) == std::pair(room / (6 + 8), room / (4 + 8)));
}

TEST_CASE("microbatches of different replicas are never in flight together") {
  const Limited costs({{"lm", 4, 1, 1, 1, true, {}}}, 2, 100, 0, 2);
  const Batch batch = test::fake_batch({{{1}}, {{6}}, {{6}}, {{1}}}, 2);
  // 18 + 7 bytes per layer, not 18 + 12.
  CHECK(stage_ends(costs, batch, RecomputeMode::Keep, 100)[0] ==
        std::vector<std::size_t>{4, 4, 4, 4});
}

TEST_CASE("without scratch memory, a cut within the limit fits exactly when 1F1B runs it") {
  int fitting = 0;
  CHECK(rc::check([&] {
    const int ranks = *rc::gen::inRange(1, 4);
    const auto module = [](const char* name, std::vector<ModuleId> inputs) {
      return test::FakeModule{name, *rc::gen::inRange(2, 6), 1, 1, 1, true, std::move(inputs)};
    };
    const Limited costs({module("vit", {}), module("lm", {ModuleId{0}})}, ranks,
                        *rc::gen::inRange(40, 250), *rc::gen::inRange(0, 10));
    std::vector<test::FakeMicrobatch> microbatches;
    microbatches.reserve(4);
    for (int m = 0; m < 4; ++m) {
      microbatches.push_back({{*rc::gen::inRange(0, 9)}, {*rc::gen::inRange(1, 9)}});
    }
    const Batch batch = test::fake_batch(microbatches);
    PlannerOptions options;
    options.partition = PartitionRule::Given;
    int left = costs.problem().modules[0].layers + costs.problem().modules[1].layers;
    for (int rank = 1; rank < ranks; ++rank) {
      options.given_layers.push_back(*rc::gen::inRange(1, left - (ranks - rank) + 1));
      left -= options.given_layers.back();
    }
    options.given_layers.push_back(left);

    const RunEnds ends = stage_ends(costs, batch, RecomputeMode::Keep, 100);
    const auto plan = test::plan("1f1b", costs, batch, options);
    const Timeline timeline = test::timeline(plan);
    std::size_t begin = 0;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      const std::size_t end = begin + static_cast<std::size_t>(options.given_layers[rank]);
      const bool fits = timeline.memory[rank].peak <= costs.problem().ranks[rank].memory_limit;
      RC_ASSERT(fits == (end <= ends[rank][begin]));
      fitting += fits ? 1 : 0;
      begin = end;
    }
  }));
  CHECK(fitting > 20);
}

}  // namespace
