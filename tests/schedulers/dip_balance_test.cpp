// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/balance.hpp"
#include "schedulers/dip/partition.hpp"
#include "schedulers/partition.hpp"
#include "sim/core/random.hpp"
#include "tests/schedulers/dip_costs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace dipsim {

namespace {

using dip::ModulePlan;
using dip::PartitionPlan;
using test::FakeModule;
using test::HeadedCosts;

PartitionPlan plan_of(const std::vector<int>& segments) {
  PartitionPlan plan;
  for (const int each : segments) {
    plan.modules.push_back({.slice_instances = 1, .segments = each, .layers = {}});
  }
  return plan;
}

/// One module of layers that take 3 ns per token for F, I and W together, on microbatches of 10
/// tokens: 30 ns per layer and microbatch.
HeadedCosts one_module(int layers, int depth, int replicas = 1) {
  return {{FakeModule{.name = "llm", .layers = layers, .f = 1, .i = 1, .w = 1, .inputs = {}}},
          depth,
          replicas};
}

Batch equal_batch(int microbatches, int replicas = 1) {
  return test::fake_batch(
      std::vector<test::FakeMicrobatch>(static_cast<std::size_t>(microbatches), {{10}}), replicas);
}

std::vector<int> balanced(const HeadedCosts& costs, const Batch& batch, PartitionPlan plan,
                          double ramp = 0.0) {
  dip::balance_layers(costs, batch, plan, ramp);
  return plan.modules.front().layers;
}

/// Time of each rank by the layers that the plan puts there.
std::vector<std::int64_t> loads(const HeadedCosts& costs, const Batch& batch,
                                const PartitionPlan& plan) {
  const auto times = layer_times(costs, batch, RecomputeMode::Keep);
  const auto depth = static_cast<std::size_t>(costs.problem().depth());
  std::vector<std::int64_t> all(depth, 0);
  std::size_t layer = 0;
  for (const ModulePlan& module : plan.modules) {
    for (std::size_t c = 0; c < module.layers.size(); ++c) {
      for (int l = 0; l < module.layers[c]; ++l) {
        all[c % depth] += times[layer++];
      }
    }
  }
  REQUIRE(layer == times.size());
  return all;
}

}  // namespace

TEST_CASE("dip balance: a head of two layers moves one layer to the other rank") {
  HeadedCosts costs = one_module(6, 2);
  CHECK(balanced(costs, equal_batch(3), plan_of({1})) == std::vector<int>{3, 3});
  costs.last = 2;  // 6 ns per token: two layers; 90 and 150 ns become 120 each
  CHECK(balanced(costs, equal_batch(3), plan_of({1})) == std::vector<int>{4, 2});
  costs.last = 0;
  costs.first = 2;
  CHECK(balanced(costs, equal_batch(3), plan_of({1})) == std::vector<int>{2, 4});
}

TEST_CASE("dip balance: what can't be evened out stays, remainder first") {
  const HeadedCosts costs = one_module(5, 2);
  CHECK(balanced(costs, equal_batch(1), plan_of({1})) == std::vector<int>{3, 2});
  // Two segments: chunks of 2, 1, 1 and 1 layers make 3 and 2 on the two ranks.
  CHECK(balanced(costs, equal_batch(1), plan_of({2})) == std::vector<int>{2, 1, 1, 1});
}

TEST_CASE("dip balance: every chunk keeps a layer, however much the head weighs") {
  HeadedCosts costs = one_module(8, 4);
  costs.last = 1000;
  CHECK(balanced(costs, equal_batch(2), plan_of({1})) == std::vector<int>{3, 2, 2, 1});
  CHECK(balanced(costs, equal_batch(2), plan_of({2})) == std::vector<int>(8, 1));
}

TEST_CASE("dip balance: the ramp shifts work towards early ranks") {
  // 16 layers on 4 ranks and 4 microbatches: a chunk takes as long on one microbatch as one layer
  // on all, so at ramp 1 the ranks count 4, 5, 6 and 7 layers; one moves from the last to the
  // first.
  const HeadedCosts costs = one_module(16, 4);
  CHECK(balanced(costs, equal_batch(4), plan_of({1}), 0.0) == std::vector<int>{4, 4, 4, 4});
  CHECK(balanced(costs, equal_batch(4), plan_of({1}), 1.0) == std::vector<int>{5, 4, 4, 3});
  // At ramp 3 they count 4, 7, 10 and 13. The last rank sheds three layers and has one left, which
  // it keeps; the one before it sheds one: 8, 7, 9 and 10.
  CHECK(balanced(costs, equal_batch(4), plan_of({1}), 3.0) == std::vector<int>{8, 4, 3, 1});
  // The more microbatches, the less the ends of the pipeline matter.
  CHECK(balanced(costs, equal_batch(64), plan_of({1}), 1.0) == std::vector<int>{4, 4, 4, 4});
}

TEST_CASE("dip balance: more replicas with the same work each change nothing") {
  for (const double ramp : {0.0, 0.5, 1.0, 3.0}) {
    CAPTURE(ramp);
    const auto alone = balanced(one_module(16, 4), equal_batch(4), plan_of({1}), ramp);
    CHECK(balanced(one_module(16, 4, 2), equal_batch(8, 2), plan_of({1}), ramp) == alone);
    CHECK(balanced(one_module(16, 4, 4), equal_batch(16, 4), plan_of({1}), ramp) == alone);
  }
}

TEST_CASE("dip balance: layers are conserved and the fullest rank never gets fuller") {
  std::size_t better = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip balance");
    const auto depth = static_cast<int>(random.integer(1, 5));
    std::vector<FakeModule> modules;
    std::vector<int> segments;
    std::vector<test::FakeMicrobatch> microbatches(static_cast<std::size_t>(random.integer(1, 5)));
    for (std::int64_t m = random.integer(1, 3); m > 0; --m) {
      segments.push_back(static_cast<int>(random.integer(1, 3)));
      modules.push_back({.name = "m" + std::to_string(m),
                         .layers = depth * segments.back() + static_cast<int>(random.integer(0, 9)),
                         .f = random.integer(1, 9),
                         .i = random.integer(1, 9),
                         .w = random.integer(1, 9),
                         .inputs = {}});
      for (auto& microbatch : microbatches) {
        const bool some = random.uniform() < 0.8;
        microbatch.push_back(
            some ? std::vector<std::int32_t>{static_cast<std::int32_t>(random.integer(1, 50))}
                 : std::vector<std::int32_t>{});
      }
    }
    HeadedCosts costs(modules, depth);
    costs.first = random.integer(0, 30);
    costs.last = random.integer(0, 60);
    const Batch batch = test::fake_batch(microbatches);
    const double ramp = seed % 3 == 0 ? 0.0 : random.uniform();
    PartitionPlan plan = plan_of(segments);
    dip::balance_layers(costs, batch, plan, ramp);

    PartitionPlan even = plan_of(segments);
    for (std::size_t m = 0; m < modules.size(); ++m) {
      const std::vector<int>& layers = plan.modules[m].layers;
      REQUIRE(layers.size() == static_cast<std::size_t>(depth * segments[m]));
      CHECK(std::accumulate(layers.begin(), layers.end(), 0) == modules[m].layers);
      CHECK(std::ranges::min(layers) >= 1);
      even.modules[m].layers = dip::even_layers(modules[m].layers, depth * segments[m]);
    }
    if (ramp == 0.0) {
      const std::int64_t before = std::ranges::max(loads(costs, batch, even));
      const std::int64_t after = std::ranges::max(loads(costs, batch, plan));
      CHECK(after <= before);
      better += after < before ? 1U : 0U;
    }
    const Placement placement = dip::place_modules(costs, plan);
    std::size_t chunk = 0;
    for (const ModulePlan& module : plan.modules) {
      for (const int layers : module.layers) {
        CHECK(placement.chunks[chunk++].layers.front().count == layers);
      }
    }
  }
  CHECK(better > 15);
}

}  // namespace dipsim
