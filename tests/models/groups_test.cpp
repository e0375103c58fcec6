// SPDX-License-Identifier: Apache-2.0
// A model whose modules have GPUs of their own.
#include "models/model_lowering.hpp"
#include "tests/models/shipped_models.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using namespace dipsim;
using namespace dipsim::test;

ModelLowering vlm(ParallelPlan plan) {
  return {load_model("vlm-s"), load_cluster("h800-64"), plan};
}

const std::vector<ModuleGroup> kMixed = {{.tp = 2, .pp = 1, .copies = 4},
                                         {.tp = 4, .pp = 2, .copies = 1}};

}  // namespace

TEST_CASE("groups: ranks stand module by module, wide tensor parallelism on the first GPUs") {
  const ModelLowering lowering = vlm({.tp = 4, .pp = 4, .dp = 2});
  const Problem& problem = lowering.on_groups(kMixed).problem();
  REQUIRE(problem.depth() == 6);
  REQUIRE(problem.ranks.size() == 12);
  const auto first_gpu = [&](std::size_t rank) {
    return problem.cells[problem.ranks[rank].cells.front().row()].front().value;
  };
  // The backbone has GPUs 0 to 15: position by position, replicas inside.
  CHECK(problem.ranks[4].tp == 4);
  CHECK(first_gpu(4) == 0);
  CHECK(first_gpu(6 + 4) == 4);
  CHECK(first_gpu(5) == 8);
  CHECK(first_gpu(6 + 5) == 12);
  // The encoder has GPUs 16 to 31: the copies of replica 0, then those of replica 1.
  CHECK(problem.ranks[0].tp == 2);
  CHECK(first_gpu(0) == 16);
  CHECK(first_gpu(3) == 22);
  CHECK(first_gpu(6) == 24);
  CHECK(problem.ranks[11].position == 5);
}

TEST_CASE("groups: passes cost what they cost under a plan of the same tensor parallelism") {
  const ModelLowering lowering = vlm({.tp = 4, .pp = 4, .dp = 1});
  const Batch batch = images(lowering.model(), {24});
  const Work work = work_on(0, 0, 24);
  const ModelLowering narrow = vlm({.tp = 2, .pp = 8, .dp = 1});
  CHECK(lowering.on_groups(kMixed).costs(layers(0, 0, 7), work, batch) ==
        narrow.costs(layers(0, 0, 7), work, batch));
  const Work text = work_on(1, 0, 1);
  CHECK(lowering.on_groups(kMixed).costs(layers(1, 0, 7), text, batch) ==
        lowering.costs(layers(1, 0, 7), text, batch));
}

TEST_CASE("groups: the copies of all replicas share the optimizer state") {
  const ModelLowering lowering = vlm({.tp = 4, .pp = 4, .dp = 2});
  const ChunkMemory copies = lowering.on_groups(kMixed).memory(layers(0, 0, 4));
  const ChunkMemory alone = vlm({.tp = 2, .pp = 8, .dp = 1}).memory(layers(0, 0, 4));
  CHECK(copies.weights == alone.weights);
  CHECK(copies.gradients == alone.gradients);
  CHECK(static_cast<double>(copies.optimizer.count) ==
        doctest::Approx(static_cast<double>(alone.optimizer.count) / 8.0));
}

TEST_CASE("groups: copies reduce gradients among themselves, a single one does not") {
  const ModelLowering lowering = vlm({.tp = 4, .pp = 4, .dp = 1});
  const ModelLowering& grouped = lowering.on_groups(kMixed);
  CHECK(grouped.gradient_reduction(chunk_on(0, layers(0, 0, 4))).occupied.count() > 0);
  CHECK(grouped.gradient_reduction(chunk_on(4, layers(1, 0, 4))).occupied.count() == 0);
}

TEST_CASE("groups: between degrees the smaller group sends or receives the whole tensor") {
  const ModelLowering lowering = vlm({.tp = 4, .pp = 4, .dp = 1});
  const Batch batch = images(lowering.model(), {24});
  const auto cost = [&](const ModelLowering& on) {
    return on.transfer(chunk_on(0, layers(0, 0, 63)), chunk_on(4, layers(1, 0, 16)),
                       work_on(0, 0, 24), work_on(1, 0, 1), batch);
  };
  const ModelLowering& mixed = lowering.on_groups(kMixed);
  // 24 images of 169 tokens of width 4096 in bf16, over two GPUs.
  CHECK(cost(mixed).bytes == Bytes{24 * 169 * 4096});
}

TEST_CASE("groups: a draft is lowered on its groups") {
  const ModelLowering lowering = vlm({.tp = 4, .pp = 4, .dp = 1});
  const Batch batch = images(lowering.model(), {8});
  const std::vector<ModuleGroup> groups = {{.tp = 8}, {.tp = 8}};
  const ModelLowering& grouped = lowering.on_groups(groups);
  Draft draft{.placement = {}, .works = {work_on(0, 0, 8), work_on(1, 0, 1)}, .groups = groups};
  draft.placement.cells = grouped.problem().cells;
  draft.placement.ranks = grouped.problem().ranks;
  draft.placement.chunks = {chunk_on(0, layers(0, 0, 63)), chunk_on(1, layers(1, 0, 32))};
  draft.placement.chunks[1].weight_set = 1;
  CHECK(lowering.lower(draft, batch) == grouped.lower(draft, batch));
}

TEST_CASE("groups: illegal ones are refused") {
  const ModelLowering lowering = vlm({.tp = 4, .pp = 4, .dp = 1});
  CHECK(lowering.group_degrees() == std::vector<int>{1, 2, 4, 8});
  const auto refusal = [&](std::vector<ModuleGroup> groups) {
    return std::string(error_of([&] { (void)lowering.on_groups(groups); }).what());
  };
  CHECK(refusal({{.tp = 3}, {.tp = 4}}).find("tp 3; allowed: 1, 2, 4, 8") != std::string::npos);
  CHECK(refusal({{.tp = 8}, {.tp = 4, .pp = 4}}).find("24 GPUs per replica; allowed: up to 16") !=
        std::string::npos);
  CHECK(refusal({{.tp = 8}}).find("1 for 2 modules") != std::string::npos);
}
