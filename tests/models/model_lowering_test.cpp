// SPDX-License-Identifier: Apache-2.0
#include "models/model_lowering.hpp"

#include "tests/models/shipped_models.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace dipsim;
using namespace dipsim::test;

std::string refusal(const std::string& model, const std::string& cluster, ParallelPlan plan) {
  const Error error =
      test::error_of([&] { ModelLowering(load_model(model), load_cluster(cluster), plan); });
  CHECK(error.kind() == ErrorKind::Input);
  return error.what();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("ranks are groups of consecutive GPUs, replicas inside pipeline positions") {
  const ModelLowering lowering(load_model("vlm-s"), load_cluster("h800-64"),
                               {.tp = 4, .pp = 4, .dp = 2});
  const Problem& problem = lowering.problem();
  REQUIRE(problem.ranks.size() == 8);
  CHECK(problem.replicas == 2);
  CHECK(problem.depth() == 4);
  // Rank 5 is position 1 of replica 1: GPUs (1·2 + 1)·4 to + 3.
  CHECK(problem.ranks[5].replica == 1);
  CHECK(problem.ranks[5].position == 1);
  const auto gpus = problem.cells[problem.ranks[5].cells.front().row()];
  CHECK(gpus.front() == GpuId{12});
  CHECK(gpus.back() == GpuId{15});
}

TEST_CASE("ranks have the memory of the cluster") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Cluster cluster = load_cluster("h800-64");
  for (const Rank& rank : lowering.problem().ranks) {
    CHECK(rank.memory_limit == cluster.memory_limit());
    CHECK(rank.reserved == cluster.reserved());
  }
}

TEST_CASE("plans that don't fit are errors that name the nearest legal value") {
  CHECK(
      contains(refusal("vlm-s", "h800-64", {.tp = 12, .pp = 1}),
               "neither divides the 8 GPUs of a node of h800-64 nor is a multiple of them; nearest "
               "legal: 8"));
  CHECK(contains(refusal("vlm-s", "h800-64", {.tp = 3, .pp = 4}), "nearest legal: 2"));
  CHECK(contains(refusal("vlm-s", "h800-64", {.tp = 8, .pp = 16}), "pp × dp is at most 8"));
  CHECK(contains(refusal("vlm-s", "h800-64", {.tp = 0, .pp = 4}), "at least 1"));
  CHECK(contains(refusal("vlm-s", "h800-64", {.tp = 4, .pp = 4, .dp = -1}), "at least 1"));
}

TEST_CASE("tp must divide the heads of every module") {
  LmmModel model = load_model("vlm-s");
  model.modules[0].spec.heads = 10;
  model.modules[0].spec.kv_groups = 10;
  const Error error =
      test::error_of([&] { ModelLowering(model, load_cluster("h800-64"), {.tp = 4, .pp = 1}); });
  CHECK(contains(error.what(), "tp 4 does not divide the 10 heads of vit-5b"));
  CHECK(contains(error.what(), "nearest legal: 2"));
}

TEST_CASE("a model that does not fit together is refused by the lowering too") {
  LmmModel model = load_model("vlm-s");
  model.modules[0].spec.layers = 0;
  CHECK(contains(test::error_of([&] {
                   ModelLowering(model, load_cluster("h800-64"), {.tp = 4, .pp = 4});
                 }).what(),
                 "layers is 0"));
}

TEST_CASE("parameters take 2 + 4 + 12 bytes, divided over the tensor-parallel group") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const ModuleShape& llm = lowering.problem().modules[1];
  const double parameters = 3.0 * llm.layer_parameters[5] / 4.0;
  const ChunkMemory memory = lowering.memory(layers(1, 5, 3));
  CHECK(static_cast<double>(memory.weights.count) == doctest::Approx(2.0 * parameters));
  CHECK(static_cast<double>(memory.gradients.count) == doctest::Approx(4.0 * parameters));
  CHECK(static_cast<double>(memory.optimizer.count) == doctest::Approx(12.0 * parameters));
}

TEST_CASE("the distributed optimizer splits its state over the replicas") {
  const auto optimizer = [](bool distributed) {
    return ModelLowering(load_model("vlm-s"), load_cluster("h800-64"),
                         {.tp = 4, .pp = 4, .dp = 4, .zero = distributed ? 1 : 0})
        .memory(layers(1, 5, 3))
        .optimizer;
  };
  CHECK(optimizer(false) == 4 * optimizer(true));
}

TEST_CASE("frozen layers have weights only") {
  LmmModel model = load_model("vlm-s");
  model.modules[0].trained = false;
  const ModelLowering lowering(model, load_cluster("h800-64"), model.parallel);
  const ChunkMemory memory = lowering.memory(layers(0, 0, 10));
  CHECK(memory.weights > Bytes{0});
  CHECK(memory.gradients == Bytes{0});
  CHECK(memory.optimizer == Bytes{0});
}

TEST_CASE("one replica reduces no gradients") {
  const ModelLowering lowering = lowering_of("vlm-s");
  CHECK(lowering.gradient_reduction(chunk_on(0, layers(1, 0, 8))).occupied == Duration{0});
}

TEST_CASE("replicas reduce four bytes per parameter, over NVLink where they share a node") {
  const auto reduction = [](int tp, int dp) {
    return ModelLowering(load_model("vlm-s"), load_cluster("h800-64"),
                         {.tp = tp, .pp = 1, .dp = dp})
        .gradient_reduction(chunk_on(0, layers(1, 5, 8)));
  };
  const double parameters = 8.0 * lowering_of("vlm-s").problem().modules[1].layer_parameters[5];
  CHECK(static_cast<double>(reduction(4, 2).bytes.count) == doctest::Approx(parameters));
  // Two GPUs of one node against two of different nodes, with the same bytes each.
  CHECK(4 * reduction(4, 2).occupied < 2 * reduction(8, 2).occupied);
}

TEST_CASE("the optimizer moves 30 bytes per parameter of a rank, shared weights once") {
  LmmModel model = load_model("vlm-s");
  model.parallel.clip_gradients = false;
  const ModelLowering lowering(model, load_cluster("h800-64"), model.parallel);
  Chunk first = chunk_on(0, layers(1, 5, 8));
  first.weight_set = 1;
  Chunk copy = first;
  const double parameters = 2.0 * lowering.problem().modules[1].layer_parameters[5];
  const Gpu& gpu = lowering.cluster().gpu;
  const double bandwidth =
      gpu.memory_gbytes_per_s.value * 1e9 * gpu.profile.memory.bandwidth_fraction.value;
  const Duration once = lowering.optimizer_step(std::vector{first});
  CHECK(to_seconds(once) == doctest::Approx(30.0 * parameters / bandwidth).epsilon(1e-3));
  CHECK(lowering.optimizer_step(std::vector{first, copy}) == once);
  copy.weight_set = 2;
  CHECK(lowering.optimizer_step(std::vector{first, copy}) > once);
}

TEST_CASE("model FLOPs count forward once and each half of backward once more") {
  LmmModel model = load_model("vlm-s");
  const Batch batch = images(model, {4, 0});
  const auto flops = [&](bool vit, bool llm) {
    model.modules[0].trained = vit;
    model.modules[1].trained = llm;
    return ModelLowering(model, load_cluster("h800-64"), model.parallel).model_flops(batch);
  };
  const double forward = flops(false, false);
  CHECK(flops(true, true) == doctest::Approx(3.0 * forward));
  CHECK(flops(false, true) > forward);
  CHECK(flops(false, true) < 3.0 * forward);
}

TEST_CASE("the peak is that of the GPUs in use") {
  CHECK(lowering_of("vlm-s").peak_flops_per_s() == doctest::Approx(16 * 989e12));
  CHECK(lowering_of("vlm-l").peak_flops_per_s() == doctest::Approx(64 * 989e12));
}

TEST_CASE("a lowered draft is a valid task graph with the model's FLOPs") {
  for (const bool split : {false, true}) {
    const ModelLowering lowering = lowering_of("vlm-s");
    const Batch batch = images(lowering.model(), {4, 9, 0});
    Draft draft;
    draft.split_backward = split;
    draft.placement.cells = lowering.problem().cells;
    draft.placement.ranks = lowering.problem().ranks;
    for (int module = 0; module < 2; ++module) {
      const int count = lowering.problem().modules[static_cast<std::size_t>(module)].layers;
      for (int rank = 0; rank < 4; ++rank) {
        const int first = count * rank / 4;
        const int end = count * (rank + 1) / 4;
        Chunk chunk = chunk_on(rank, layers(module, first, end - first));
        chunk.weight_set = static_cast<int>(draft.placement.chunks.size());
        draft.placement.chunks.push_back(chunk);
      }
    }
    for (int microbatch = 0; microbatch < 3; ++microbatch) {
      for (int module = 0; module < 2; ++module) {
        const auto count =
            static_cast<int>(batch.of(MicrobatchId{microbatch}, ModuleId{module}).size());
        if (count > 0) {
          draft.works.push_back(work_on(module, 0, count, microbatch));
        }
      }
    }
    draft.layer_mixes = split;
    const TaskGraph graph = lowering.lower(draft, batch);
    CHECK_NOTHROW(validate(graph));
    for (const Pair& pair : graph.pairs) {
      CHECK((pair.strategy_count > 3) == draft.layer_mixes);
    }
    CHECK(graph.model_flops == lowering.model_flops(batch));
    CHECK(std::ranges::any_of(graph.tasks, [](const Task& task) { return task.op == Op::W; }) ==
          split);
  }
}
