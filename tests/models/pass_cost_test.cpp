// SPDX-License-Identifier: Apache-2.0
#include "models/pass_cost.hpp"

#include "models/model_lowering.hpp"
#include "sim/core/parallel.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/models/shipped_models.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace dipsim;
using namespace dipsim::test;

}  // namespace

TEST_CASE("strategies go from fast to saving, and backward is I and W together") {
  for (const std::string name : {"vlm-s", "vlm-m", "vlm-l", "t2v-s", "t2v-l"}) {
    const ModelLowering lowering = lowering_of(name);
    const LmmModel& model = lowering.model();
    const Batch batch = name.starts_with("vlm") ? images(model, {4}) : clips(model);
    for (int module = 0; module < 2; ++module) {
      const int count = static_cast<int>(batch.of(MicrobatchId{0}, ModuleId{module}).size());
      const auto costs = lowering.costs(layers(module, 0, 8), work_on(module, 0, count), batch);
      REQUIRE(costs.size() == 3);
      CHECK(costs[0].mode == RecomputeMode::Keep);
      CHECK(costs[1].mode == RecomputeMode::Selective);
      CHECK(costs[2].mode == RecomputeMode::Full);
      for (std::size_t i = 0; i < costs.size(); ++i) {
        CHECK(costs[i].b == costs[i].i + costs[i].w);
        CHECK(costs[i].f == costs[0].f);
        CHECK(costs[i].w == costs[0].w);
        CHECK(costs[i].f_to_i + costs[i].rebuilt <= costs[0].f_to_i);
        if (i > 0) {
          CHECK(costs[i].b > costs[i - 1].b);
          CHECK(costs[i].f_to_i < costs[i - 1].f_to_i);
        }
      }
    }
  }
}

TEST_CASE("mixes of modes stand among the modes, each slower and smaller than the one before") {
  for (const std::string name : {"vlm-s", "vlm-m", "vlm-l", "t2v-s", "t2v-l"}) {
    const ModelLowering lowering = lowering_of(name);
    const LmmModel& model = lowering.model();
    const Batch batch = name.starts_with("vlm") ? images(model, {4}) : clips(model);
    for (int module = 0; module < 2; ++module) {
      CAPTURE(name);
      CAPTURE(module);
      const int count = static_cast<int>(batch.of(MicrobatchId{0}, ModuleId{module}).size());
      const Work work = work_on(module, 0, count);
      const auto uniform = lowering.strategies(layers(module, 0, 8), work, batch);
      const auto mixed = lowering.mixed_strategies(layers(module, 0, 8), work, batch);
      CHECK(mixed.size() > 6);
      CHECK(mixed.size() <= kStrategyCandidates + 1);  // selective need not be a candidate
      CHECK(mixed.front() == uniform.front());
      CHECK(mixed.back() == uniform.back());
      for (const RecomputeMode mode :
           {RecomputeMode::Keep, RecomputeMode::Selective, RecomputeMode::Full}) {
        CHECK(mixed[uniform_strategy(mixed, mode)] == uniform[uniform_strategy(uniform, mode)]);
      }
      for (std::size_t i = 0; i < mixed.size(); ++i) {
        CHECK(mixed[i].b == mixed[i].i + mixed[i].w);
        CHECK(mixed[i].f == uniform[0].f);
        CHECK(mixed[i].i_to_w == uniform[0].i_to_w);
        CHECK(mixed[i].rebuilt <= uniform[2].rebuilt);
        if (i > 0) {
          CHECK(mixed[i].b > mixed[i - 1].b);
        }
        if (mixed[i].mode == RecomputeMode::Mixed) {
          CHECK(mixed[i].f_to_i < mixed[i - 1].f_to_i);
          CHECK(mixed[i].rebuilt > Bytes{0});
        }
      }
    }
  }
}

TEST_CASE("a mix of one layer is a mode") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {4});
  const Work work = work_on(1, 0, 1);
  CHECK(lowering.mixed_strategies(layers(1, 5, 1), work, batch) ==
        lowering.strategies(layers(1, 5, 1), work, batch));
}

TEST_CASE("mixed chunks mix the modes of each module, and recompute the cheaper layers first") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {3});
  const std::vector<LayerRange> both = {{ModuleId{0}, 50, 13}, {ModuleId{1}, 0, 5}};
  const Work whole{.portions = {{MicrobatchId{0}, 0, 0}}};
  const auto mixed = lowering.mixed_strategies(both, whole, batch);
  const auto vit = lowering.strategies(std::span(both).first(1), work_on(0, 0, 3), batch);
  const auto llm = lowering.strategies(std::span(both).last(1), work_on(1, 0, 1), batch);
  // No slower than all layers of one module full and of the other kept, at the same memory.
  for (const auto& [full, kept] : {std::pair(vit, llm), std::pair(llm, vit)}) {
    const Duration time = full.back().b + kept.front().b;
    const Bytes held = full.back().f_to_i + kept.front().f_to_i;
    const double range = static_cast<double>((mixed.front().f_to_i - mixed.back().f_to_i).count);
    const Bytes bucket{static_cast<std::int64_t>(range / (kStrategyCandidates - 2))};
    CHECK(std::ranges::any_of(mixed, [&](const Strategy& s) {
      return s.b <= time + Duration{2} && s.f_to_i <= held + bucket;
    }));
  }
}

TEST_CASE("full recomputation adds the forward time of the blocks to backward") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {4});
  const auto costs = lowering.costs(layers(1, 4, 8), work_on(1, 0, 1), batch);
  CHECK(to_seconds(costs[2].b - costs[0].b) == doctest::Approx(to_seconds(costs[0].f)));
}

TEST_CASE("layers add up") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {4});
  const Work work = work_on(1, 0, 1);
  const auto cost = [&](int first, int count) {
    return lowering.costs(layers(1, first, count), work, batch).front();
  };
  const Strategy all = cost(0, 32);
  const Strategy front = cost(0, 10);
  const Strategy back = cost(10, 22);
  CHECK(std::abs((all.f - front.f - back.f).count()) <= 1);
  CHECK(all.f_to_i == front.f_to_i + back.f_to_i);
  const std::vector<LayerRange> both = {{ModuleId{1}, 0, 10}, {ModuleId{1}, 10, 22}};
  CHECK(lowering.costs(both, work, batch).front() == all);
}

TEST_CASE("embedding and head make the first and the last layer dearer") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {4});
  const auto forward = [&](int layer) {
    return lowering.costs(layers(1, layer, 1), work_on(1, 0, 1), batch).front().f;
  };
  CHECK(forward(0) > forward(1));
  CHECK(forward(31) > forward(0));
  CHECK(forward(15) == forward(1));
}

TEST_CASE("more images never take less time or memory") {
  const ModelLowering lowering = lowering_of("vlm-l");
  const Batch batch = images(lowering.model(), {48});
  Strategy before;
  for (int count = 1; count <= 48; ++count) {
    const auto costs = lowering.costs(layers(0, 0, 6), work_on(0, 0, count), batch);
    CHECK(costs.front().f > before.f);
    CHECK(costs.front().b > before.b);
    CHECK(costs.front().f_to_i > before.f_to_i);
    before = costs.front();
  }
}

TEST_CASE("two documents cost less than one of the same length") {
  const ModelLowering lowering = lowering_of("vlm-m");
  std::vector<Microbatch> microbatches(2);
  microbatches[0].documents = {8192};
  microbatches[1].documents = {4096, 4096};
  const Batch batch = make_batch(microbatches, lowering.model().feeds(), 1);
  const auto forward = [&](int microbatch) {
    return lowering.costs(layers(1, 0, 16), work_on(1, 0, 1, microbatch), batch).front().f;
  };
  CHECK(forward(1) < forward(0));
}

TEST_CASE("a work of no module costs the layers of all modules") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {3});
  const std::vector<LayerRange> mixed = {{ModuleId{0}, 60, 3}, {ModuleId{1}, 0, 5}};
  const Work whole{.portions = {{MicrobatchId{0}, 0, 0}}};
  const Strategy together = lowering.costs(mixed, whole, batch).front();
  const Strategy vit = lowering.costs(mixed, work_on(0, 0, 3), batch).front();
  const Strategy llm = lowering.costs(mixed, work_on(1, 0, 1), batch).front();
  CHECK(std::abs((together.f - vit.f - llm.f).count()) <= 1);
  CHECK(together.f_to_i == vit.f_to_i + llm.f_to_i);
}

TEST_CASE("a microbatch without images costs the vision layers nothing") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {0});
  const Work whole{.portions = {{MicrobatchId{0}, 0, 0}}};
  const auto costs = lowering.costs(layers(0, 0, 10), whole, batch);
  REQUIRE(costs.size() == 1);
  CHECK(costs[0] == Strategy{});
}

TEST_CASE("frozen modules lose their weight gradient, and all of backward with nothing upstream") {
  LmmModel model = load_model("vlm-s");
  model.modules[1].trained = false;
  const ModelLowering frozen_llm(model, load_cluster("h800-64"), model.parallel);
  const Batch batch = images(model, {3});
  const Strategy llm = frozen_llm.costs(layers(1, 0, 8), work_on(1, 0, 1), batch).front();
  CHECK(llm.w == Duration{0});
  CHECK(llm.i > Duration{0});
  CHECK(llm.b == llm.i);
  CHECK_FALSE(frozen_llm.trains(ModuleId{1}));
  model.modules[0].trained = false;
  const ModelLowering frozen(model, load_cluster("h800-64"), model.parallel);
  const auto vit = frozen.costs(layers(0, 0, 8), work_on(0, 0, 3), batch);
  REQUIRE(vit.size() == 1);
  CHECK(vit[0].f > Duration{0});
  CHECK(vit[0].b == Duration{0});
  CHECK(vit[0].f_to_i == Bytes{0});
}

TEST_CASE(
    "a cluster with host bandwidth can offload all that a pair keeps, at the time of a copy") {
  Cluster cluster = load_cluster("h800-64");
  CHECK(cluster.host_gbytes_per_s == cluster.gpu.pcie_gbytes_per_s.value);
  cluster.host_gbytes_per_s = 50.0;
  const LmmModel model = load_model("vlm-s");
  const ModelLowering lowering(model, cluster, model.parallel);
  const Batch batch = images(model, {4});
  const auto costs = lowering.costs(layers(1, 0, 8), work_on(1, 0, 1), batch);
  REQUIRE(costs.size() == 3);
  CHECK(std::ranges::none_of(costs,
                             [](const Strategy& s) { return s.mode == RecomputeMode::Offload; }));
  const auto offloaded = lowering.offloaded(costs[0]);
  REQUIRE(offloaded);
  CHECK(offloaded->mode == RecomputeMode::Offload);
  CHECK(offloaded->b == costs[0].b);
  CHECK(offloaded->offload == costs[0].f_to_i);
  const double fraction = cluster.gpu.profile.host.bandwidth_fraction.value;
  CHECK(to_seconds(offloaded->copy) ==
        doctest::Approx(static_cast<double>(costs[0].f_to_i.count) / (50e9 * fraction))
            .epsilon(0.01));
  cluster.host_gbytes_per_s = 0.0;
  CHECK_FALSE(ModelLowering(model, cluster, model.parallel).offloaded(costs[0]));
}

TEST_CASE("costs don't depend on how many threads ask for them") {
  const LmmModel model = load_model("vlm-l");
  std::vector<int> counts(48);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = static_cast<int>(i);
  }
  const Batch batch = images(model, counts);
  const auto all = [&](std::size_t jobs) {
    const ModelLowering lowering(model, load_cluster("h800-64"), model.parallel);
    std::vector<std::vector<Strategy>> costs(4 * counts.size());
    parallel_for(costs.size(), jobs, [&](std::size_t i) {
      const auto microbatch = static_cast<int>(i % counts.size());
      const int module = i % 2 == 0 ? 0 : 1;
      costs[i] =
          lowering.costs(layers(module, 0, 10),
                         work_on(module, 0, module == 0 ? microbatch : 1, microbatch), batch);
    });
    return costs;
  };
  const auto expected = all(1);
  CHECK(all(4) == expected);
  CHECK(all(16) == expected);
}
