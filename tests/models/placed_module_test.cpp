// SPDX-License-Identifier: Apache-2.0
#include "models/placed_module.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

/// A module of a shipped model.
PlacedModule placed(const std::string& model, std::size_t module, int tp = 1) {
  return place_modules(load_model(model), {.tp = tp})[module];
}

double block_parameters(const PlacedModule& module) {
  return module.spec.layers * parameters_of(module, Part::Block);
}

WorkShape images(std::int64_t count, std::int64_t patches = 2704) {
  return {.instances = count,
          .tokens = count * patches,
          .output_tokens = count * patches / 16,
          .sequences = count,
          .squares = count * patches * patches};
}

WorkShape one_document(std::int64_t tokens) {
  return {.instances = 1,
          .tokens = tokens,
          .output_tokens = tokens,
          .sequences = 1,
          .squares = tokens * tokens};
}

double block_tflops(const PlacedModule& module, const WorkShape& shape) {
  return module.spec.layers * block_forward_flops(module, shape) * 1e-12;
}

bool within_one_percent(double value, double expected) {
  return value > 0.99 * expected && value < 1.01 * expected;
}

}  // namespace

// Expected values: arithmetic on the model table of DIP (arXiv 2504.14145).
TEST_CASE("block parameters of DIP's modules") {
  CHECK(within_one_percent(block_parameters(placed("vlm-s", 0)), 4.28e9));  // ViT 5B
  CHECK(within_one_percent(block_parameters(placed("vlm-l", 0)), 21.7e9));  // ViT 22B
  CHECK(within_one_percent(block_parameters(placed("vlm-s", 1)), 7.0e9));   // Llama3 8B
  CHECK(within_one_percent(block_parameters(placed("vlm-m", 1)), 31.2e9));  // Qwen2 32B
  CHECK(within_one_percent(block_parameters(placed("vlm-l", 1)), 70.2e9));  // Qwen2 72B
  CHECK(within_one_percent(block_parameters(placed("t2v-s", 1)), 4.93e9));  // DiT 5B
  CHECK(within_one_percent(block_parameters(placed("t2v-l", 1)), 29.0e9));  // DiT 30B
}

TEST_CASE("GPT-3 has 175 billion parameters") {
  LmmModel model;
  model.modules.push_back(
      {.spec = load_module("gpt-175b"), .inputs = {}, .mask = AttentionMask::Causal});
  const std::vector<double> layers = layer_parameters(place_modules(model, {})[0]);
  CHECK(within_one_percent(std::accumulate(layers.begin(), layers.end(), 0.0), 174.6e9));
}

TEST_CASE("forward FLOPs per image and per causal document of DIP's modules") {
  CHECK(within_one_percent(block_tflops(placed("vlm-s", 0), images(1)), 26.4));
  CHECK(within_one_percent(block_tflops(placed("vlm-l", 0), images(1)), 126.0));
  CHECK(within_one_percent(block_tflops(placed("vlm-s", 1), one_document(8192)), 132.0));
  CHECK(within_one_percent(block_tflops(placed("vlm-m", 1), one_document(8192)), 555.0));
  CHECK(within_one_percent(block_tflops(placed("vlm-l", 1), one_document(8192)), 1238.0));
}

TEST_CASE("FLOPs of the whole module add embedding, projector and head to its blocks") {
  const PlacedModule vit = placed("vlm-s", 0);
  const WorkShape image = images(1);
  const double projector = 2.0 * 169 * (16.0 * 1792 * 4096 + 4096.0 * 4096);
  CHECK(forward_flops(vit, image) ==
        doctest::Approx(block_tflops(vit, image) * 1e12 + 2.0 * 2704 * 1176 * 1792 + projector));
  const PlacedModule llm = placed("vlm-s", 1);
  const WorkShape document = one_document(8192);
  CHECK(forward_flops(llm, document) ==
        doctest::Approx(block_tflops(llm, document) * 1e12 + 2.0 * 8192 * 4096 * 128'256));
}

TEST_CASE("first and last layer carry embedding, projector and head") {
  const std::vector<double> llm = layer_parameters(placed("vlm-s", 1));
  REQUIRE(llm.size() == 32);
  CHECK(llm.front() - llm[1] == 128'256.0 * 4096);
  CHECK(llm.back() - llm[1] == 128'256.0 * 4096);
  const std::vector<double> text_encoder = layer_parameters(placed("t2v-s", 0));
  CHECK(text_encoder.back() == text_encoder[1]);
  const std::vector<double> vit = layer_parameters(placed("vlm-s", 0));
  CHECK(vit.back() - vit[1] == 16.0 * 1792 * 4096 + 4096.0 * 4096);
}

TEST_CASE("the projector hands on tokens at the width of its consumer") {
  CHECK(placed("vlm-s", 0).output_width == 4096);
  CHECK(placed("vlm-l", 0).output_width == 8192);
  CHECK(placed("vlm-s", 0).merge == 16);
  CHECK(placed("t2v-s", 1).context_width == 4096);
}

TEST_CASE("a gradient passes through what is trained and everything downstream of it") {
  LmmModel model = load_model("vlm-s");
  model.modules[1].trained = false;
  CHECK(place_modules(model, {})[1].backward);
  model.modules[0].trained = false;
  CHECK_FALSE(place_modules(model, {})[0].backward);
  CHECK_FALSE(place_modules(model, {})[1].backward);
  model.modules[1].trained = true;
  CHECK_FALSE(place_modules(model, {})[0].backward);
  CHECK(place_modules(model, {})[1].backward);
}

TEST_CASE("a causal mask counts half of the pairs, and documents only pairs inside them") {
  const WorkShape documents{.instances = 1, .tokens = 30, .sequences = 2, .squares = 500};
  CHECK(counted_pairs(documents, AttentionMask::Documents) == 250.0);
  CHECK(counted_pairs(documents, AttentionMask::Causal) == 250.0);
  CHECK(counted_pairs(documents, AttentionMask::Full) == 500.0);
}

TEST_CASE("a shape sums what a work holds, under the mask of the module") {
  Batch batch;
  batch.modules = 1;
  batch.replica = {0};
  batch.groups = {10, 20};
  batch.instances.add_row();
  batch.instances.push_back({.tokens = 30, .output_tokens = 30, .group_count = 2});
  const Work work{.module = ModuleId{0}, .portions = {{MicrobatchId{0}, 0, 1}}};
  const WorkShape documents = shape_of(batch, work, ModuleId{0}, AttentionMask::Documents);
  CHECK(documents.squares == 500);
  CHECK(documents.sequences == 2);
  const WorkShape causal = shape_of(batch, work, ModuleId{0}, AttentionMask::Causal);
  CHECK(causal.squares == 900);
  CHECK(causal.sequences == 1);
}

TEST_CASE("a work of no module holds every instance of its microbatches") {
  Batch batch;
  batch.modules = 1;
  batch.replica = {0};
  batch.groups = {10, 20};
  batch.instances.add_row();
  batch.instances.push_back({.tokens = 10, .first_group = 0, .group_count = 1});
  batch.instances.push_back({.tokens = 20, .first_group = 1, .group_count = 1});
  Work work{.portions = {{MicrobatchId{0}, 0, 0}}};
  CHECK(shape_of(batch, work, ModuleId{0}, AttentionMask::Full).tokens == 30);
  work.module = ModuleId{0};
  work.portions = {{MicrobatchId{0}, 1, 1}};
  CHECK(shape_of(batch, work, ModuleId{0}, AttentionMask::Full).tokens == 20);
}
