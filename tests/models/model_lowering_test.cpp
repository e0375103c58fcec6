// SPDX-License-Identifier: Apache-2.0
#include "models/model_lowering.hpp"

#include "sim/core/parallel.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

ModelLowering lowering_of(const std::string& model, const std::string& cluster = "h800-64") {
  const LmmModel loaded = load_model(model);
  return {loaded, load_cluster(cluster), loaded.parallel};
}

/// One microbatch per entry, with so many images and two documents, 8193 tokens together.
Batch images(const LmmModel& model, const std::vector<int>& per_microbatch) {
  std::vector<Microbatch> microbatches;
  for (const int count : per_microbatch) {
    Microbatch microbatch;
    microbatch.documents = {8192 - 10 * count, 10 * count + 1};
    microbatch.images.assign(static_cast<std::size_t>(count), {2704, 169, 0});
    microbatches.push_back(microbatch);
  }
  return make_batch(microbatches, model.feeds(), 1);
}

Batch clips(const LmmModel& model) {
  Microbatch microbatch;
  microbatch.clips = {{896, 0, 100}, {1792, 0, 200}};
  return make_batch(std::vector{microbatch}, model.feeds(), 1);
}

Work work_on(int module, int first, int count, int microbatch = 0) {
  return {.module = ModuleId{module}, .portions = {{MicrobatchId{microbatch}, first, count}}};
}

std::vector<LayerRange> layers(int module, int first, int count) {
  return {{ModuleId{module}, first, count}};
}

Chunk chunk_on(int rank, std::vector<LayerRange> ranges) {
  Chunk chunk;
  chunk.layers = std::move(ranges);
  chunk.rank = RankId{rank};
  return chunk;
}

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
  CHECK(contains(refusal("vlm-s", "h800-64", {.tp = 16, .pp = 1}), "nearest legal: 8"));
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

TEST_CASE("a cluster with host bandwidth offers to offload, at the time of two copies") {
  Cluster cluster = load_cluster("h800-64");
  cluster.host_gbytes_per_s = 50.0;
  const LmmModel model = load_model("vlm-s");
  const ModelLowering lowering(model, cluster, model.parallel);
  const Batch batch = images(model, {4});
  const auto costs = lowering.costs(layers(1, 0, 8), work_on(1, 0, 1), batch);
  REQUIRE(costs.size() == 4);
  CHECK(costs[1].mode == RecomputeMode::Offload);
  CHECK(costs[1].b == costs[0].b);
  CHECK(costs[1].offload == costs[0].f_to_i);
  const double fraction = cluster.gpu.profile.host.bandwidth_fraction.value;
  CHECK(to_seconds(costs[1].copy) ==
        doctest::Approx(static_cast<double>(costs[0].f_to_i.count) / (50e9 * fraction))
            .epsilon(0.01));
  CHECK(lowering.strategies(layers(1, 0, 8), work_on(1, 0, 1), batch).size() == 3);
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
                         {.tp = 4, .pp = 4, .dp = 4, .distributed_optimizer = distributed})
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

TEST_CASE("inside a module its sharded tokens travel, between modules the merged ones") {
  const ModelLowering lowering = lowering_of("vlm-s");  // tp 4, ViT 1792 wide, LLM 4096 wide
  const Batch batch = images(lowering.model(), {10});
  const Work slice = work_on(0, 0, 8);
  const Work sequence = work_on(1, 0, 1);
  const Chunk vit = chunk_on(0, layers(0, 0, 16));
  const Chunk llm = chunk_on(1, layers(1, 0, 8));
  CHECK(lowering.transfer(vit, chunk_on(1, layers(0, 16, 16)), slice, slice, batch).bytes.count ==
        8 * 2704 * 1792 * 2 / 4);
  CHECK(lowering.transfer(vit, llm, slice, sequence, batch).bytes.count == 8 * 169 * 4096 * 2 / 4);
  const std::int64_t tokens = batch.of(MicrobatchId{0}, ModuleId{1})[0].tokens;
  CHECK(
      lowering.transfer(llm, chunk_on(2, layers(1, 8, 8)), sequence, sequence, batch).bytes.count ==
      tokens * 4096 * 2 / 4);
}

TEST_CASE("a diffusion transformer passes its prompt on, and a clip gets its own prompt only") {
  const ModelLowering lowering = lowering_of("t2v-s");  // tp 4, text 4096 wide, DiT 3584 wide
  const Batch batch = clips(lowering.model());
  const Work clip = work_on(1, 1, 1);
  const Chunk dit = chunk_on(1, layers(1, 0, 7));
  CHECK(lowering.transfer(dit, chunk_on(2, layers(1, 7, 7)), clip, clip, batch).bytes.count ==
        (1792 + 200) * 3584 * 2 / 4);
  const Chunk text = chunk_on(0, layers(0, 24, 8));
  CHECK(lowering.transfer(text, dit, work_on(0, 0, 2), clip, batch).bytes.count ==
        200 * 4096 * 2 / 4);
  CHECK(lowering.transfer(text, dit, work_on(0, 0, 1), clip, batch).bytes.count == 0);
}

TEST_CASE("a work of no module carries whatever is alive at the cut") {
  const ModelLowering lowering = lowering_of("vlm-s");
  const Batch batch = images(lowering.model(), {2});
  const Work whole{.portions = {{MicrobatchId{0}, 0, 0}}};
  const Chunk before = chunk_on(0, layers(0, 0, 16));
  const auto bytes = [&](std::vector<LayerRange> next) {
    return lowering.transfer(before, chunk_on(1, std::move(next)), whole, whole, batch).bytes.count;
  };
  CHECK(bytes(layers(0, 16, 16)) == 2 * 2704 * 1792 * 2 / 4);
  CHECK(bytes(layers(1, 0, 8)) == 2 * 169 * 4096 * 2 / 4);
  CHECK(bytes(layers(1, 8, 8)) == std::int64_t{8193} * 4096 * 2 / 4);
}

TEST_CASE("transfers between nodes take the network") {
  const ModelLowering lowering = lowering_of("vlm-s");  // two ranks of four GPUs per node
  const Batch batch = images(lowering.model(), {8});
  const Work slice = work_on(0, 0, 8);
  const auto occupied = [&](int from, int to) {
    return lowering
        .transfer(chunk_on(from, layers(0, 0, 16)), chunk_on(to, layers(0, 16, 16)), slice, slice,
                  batch)
        .occupied;
  };
  CHECK(occupied(0, 1) == occupied(2, 3));
  CHECK(occupied(1, 2) > 5 * occupied(0, 1));
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
  const ModelLowering lowering = lowering_of("vlm-s");
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
    const TaskGraph graph = lowering.lower(draft, batch);
    CHECK_NOTHROW(validate(graph));
    CHECK(graph.model_flops == lowering.model_flops(batch));
    CHECK(std::ranges::any_of(graph.tasks, [](const Task& task) { return task.op == Op::W; }) ==
          split);
  }
}
