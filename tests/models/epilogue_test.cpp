// SPDX-License-Identifier: Apache-2.0
// What follows the passes: reductions in buckets, the norm of the gradients, tied embeddings.
#include "models/epilogue.hpp"

#include "models/model_lowering.hpp"
#include "sim/cluster/kernel_time.hpp"
#include "sim/cluster/network_time.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/models/shipped_models.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace dipsim;
using namespace dipsim::test;

Duration ns(std::int64_t count) { return Duration{count}; }

/// Two layers on two ranks, each of two replicas; the first layer's reduction has four buckets.
class Bucketed final : public FakeCosts {
 public:
  Bucketed() : FakeCosts({{"lm", 2, 1, 2, 3, true, {}}}, 2, 2) { reduction = ns(100); }

  [[nodiscard]] int gradient_buckets(const Chunk& chunk) const override {
    return chunk.layers.front().first == 0 ? 4 : 1;
  }
};

/// Reductions of a batch with so many tokens on each replica, by the first layer of their chunk.
std::vector<Duration> reductions(std::int32_t first, std::int32_t second, bool split) {
  const Bucketed costs;
  Draft draft;
  draft.placement.cells = costs.problem().cells;
  draft.placement.ranks = costs.problem().ranks;
  draft.split_backward = split;
  for (int rank = 0; rank < 4; ++rank) {
    draft.placement.chunks.push_back(chunk_on(rank, layers(0, rank % 2, 1)));
    draft.placement.chunks.back().weight_set = rank % 2;
  }
  draft.works = {{.replica = 0, .portions = {{.microbatch = MicrobatchId{0}}}},
                 {.replica = 1, .portions = {{.microbatch = MicrobatchId{1}}}}};
  const TaskGraph graph = lower_draft(draft, fake_batch({{{first}}, {{second}}}, 2), costs);
  std::vector<Duration> times;
  for (const Task& task : graph.tasks) {
    if (task.op == Op::Collective) {
      times.push_back(task.fixed);
    }
  }
  return times;
}

ModelLowering llm(ParallelPlan plan, bool tied = false) {
  LmmModel model = load_model("vlm-s");
  model.modules = {model.modules[1]};
  model.modules[0].inputs = {};
  model.modules[0].tied = tied;
  return {model, load_cluster("h800-64"), plan};
}

}  // namespace

TEST_CASE("reduction in buckets: the last one remains, and what the pass is too short for") {
  CHECK(exposed_reduction(ns(100), 1, ns(1000)) == ns(100));
  CHECK(exposed_reduction(ns(100), 4, ns(0)) == ns(100));
  // Gradients of a bucket every 10; four buckets of 25 from then on, and the pass ends at 40.
  CHECK(exposed_reduction(ns(100), 4, ns(40)) == ns(10 + 100 - 40));
  CHECK(exposed_reduction(ns(100), 4, ns(100)) == ns(25));
  CHECK(exposed_reduction(ns(100), 4, ns(100'000)) == ns(25));
}

TEST_CASE("reduction in buckets runs beside the shortest last pass of its chunk") {
  // B takes 5 per token: 8 tokens are the shortest, of which 3/4 hide the reduction.
  CHECK(reductions(8, 12, false) == std::vector<Duration>{ns(100 - 40 * 3 / 4), ns(100)});
  // W takes 3 per token.
  CHECK(reductions(8, 12, true) == std::vector<Duration>{ns(100 - 24 * 3 / 4), ns(100)});
}

TEST_CASE("only the chunk with the first layer of a pipeline has buckets, of 40 million at least") {
  const ParallelPlan plan{.tp = 4, .pp = 4, .dp = 2};
  const ModelLowering lowering(load_model("vlm-s"), load_cluster("h800-64"), plan);
  const double parameters = 15.0 * lowering.problem().modules[0].layer_parameters[5] / 4.0;
  const int buckets = lowering.gradient_buckets(chunk_on(0, layers(0, 0, 15)));
  CHECK(buckets > parameters / 40e6);
  CHECK(buckets < parameters / 40e6 + 1.1);  // the embedding is in the first layer, too
  CHECK(lowering.gradient_buckets(chunk_on(0, layers(0, 15, 15))) == 1);
  CHECK(lowering.gradient_buckets(chunk_on(0, layers(1, 0, 8))) == 1);
  ParallelPlan off = plan;
  off.overlap_gradients = false;
  CHECK(ModelLowering(load_model("vlm-s"), load_cluster("h800-64"), off)
            .gradient_buckets(chunk_on(0, layers(0, 0, 15))) == 1);
}

TEST_CASE("clipping reads the gradients of a share and sums one number over all GPUs") {
  const auto step = [](bool clip, int zero) {
    return llm({.tp = 4, .pp = 4, .dp = 2, .zero = zero, .clip_gradients = clip})
        .optimizer_step(std::vector{chunk_on(0, layers(0, 5, 4))});
  };
  const ModelLowering lowering = llm({.tp = 4, .pp = 4, .dp = 2});
  const double parameters = lowering.problem().modules[0].layer_parameters[5];
  const auto norm = [&](double shares, CollectiveGroup group) {
    return memory_seconds(lowering.cluster().gpu, 4.0 * parameters / shares) +
           collective_seconds(lowering.cluster(), CollectiveKind::AllReduce, 4.0, group);
  };
  CHECK(to_seconds(step(true, 1) - step(false, 1)) ==
        doctest::Approx(norm(2.0, {.members = 32, .nodes = 4})).epsilon(1e-4));
  CHECK(to_seconds(step(true, 0) - step(false, 0)) ==
        doctest::Approx(norm(1.0, {.members = 16, .nodes = 4})).epsilon(1e-4));
}

TEST_CASE("tied embeddings: the ranks with embedding and head add up its gradients") {
  const ParallelPlan plan{.tp = 4, .pp = 4, .dp = 1};
  const auto more = [&](std::vector<LayerRange> ranges) {
    const std::vector<Chunk> chunks = {chunk_on(0, std::move(ranges))};
    return to_seconds(llm(plan, true).optimizer_step(chunks) -
                      llm(plan, false).optimizer_step(chunks));
  };
  const ModelLowering lowering = llm(plan);
  const ModuleSpec& spec = lowering.model().modules[0].spec;
  const double bytes = 4.0 * spec.vocabulary * spec.hidden / 4.0;
  const double sum = collective_seconds(lowering.cluster(), CollectiveKind::AllReduce, bytes,
                                        {.members = 2, .nodes = 2});
  CHECK(more(layers(0, 0, 8)) == doctest::Approx(sum).epsilon(1e-4));
  CHECK(more(layers(0, 24, 8)) == doctest::Approx(sum).epsilon(1e-4));
  CHECK(more(layers(0, 8, 8)) == 0.0);
}

TEST_CASE("tied embeddings: one chunk with embedding and head holds the matrix once") {
  const ParallelPlan plan{.tp = 4, .pp = 1, .dp = 1};
  const ModuleSpec spec = llm(plan).model().modules[0].spec;
  const std::int64_t all = llm(plan, false).memory(layers(0, 0, 32)).weights.count;
  const std::int64_t once = llm(plan, true).memory(layers(0, 0, 32)).weights.count;
  CHECK(all - once == 2 * std::int64_t{spec.vocabulary} * spec.hidden / 4);
  CHECK(llm(plan, true).memory(layers(0, 0, 8)).weights ==
        llm(plan, false).memory(layers(0, 0, 8)).weights);
}

TEST_CASE("tied embeddings need a head") {
  LmmModel model = load_model("vlm-s");
  model.modules[0].tied = true;
  const Error error = error_of([&] { check_model(model, "model"); });
  CHECK(std::string(error.what()).find("a tied head needs \"head\"") != std::string::npos);
}
