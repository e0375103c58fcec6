// SPDX-License-Identifier: Apache-2.0
// Predicted times of single layers against published ones. Nothing is tuned on them.
#include "models/cost_model.hpp"
#include "tests/cluster/published.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace dipsim;

PlacedModule megatron_layer(const test::PublishedRow& row) {
  const int hidden = std::stoi(row.at("hidden"));
  const int heads = std::stoi(row.at("heads"));
  LmmModel model;
  model.modules.push_back({.spec = {.name = "gpt",
                                    .block = Block::Plain,
                                    .layers = std::stoi(row.at("layers")),
                                    .hidden = hidden,
                                    .ffn = 4 * hidden,
                                    .heads = heads,
                                    .kv_groups = heads,
                                    .head_dim = hidden / heads,
                                    .attention = AttentionKernel::WrittenOut,
                                    .dropout = true},
                           .inputs = {},
                           .mask = AttentionMask::Causal});
  return place_modules(model, {.tp = std::stoi(row.at("tp"))})[0];
}

}  // namespace

TEST_CASE("times of a 22B layer on A100 with sequence parallelism are predicted within 5 %") {
  const auto rows = test::published_rows("megatron_seqpar_layer_times");
  if (!rows) {
    return;
  }
  int seen = 0;
  for (const test::PublishedRow& row : *rows) {
    const bool selective = row.at("mode") == "selective_plus_sequence";
    if (!selective && row.at("mode") != "sequence_parallel") {
      continue;  // the others run without sequence parallelism
    }
    ++seen;
    const std::int64_t count = std::stoll(row.at("microbatch_seq"));
    const std::int64_t length = std::stoll(row.at("seq_len"));
    const WorkShape shape{.instances = count,
                          .tokens = count * length,
                          .output_tokens = count * length,
                          .sequences = count,
                          .squares = count * length * length};
    const PartCost cost = cost_of(megatron_layer(row), Part::Block, shape, load_cluster("a100-8"));
    const double forward = cost.f * 1e3;
    const double backward = (cost.i + cost.w + (selective ? cost.selective : 0.0)) * 1e3;
    MESSAGE(row.at("mode") << ": forward " << forward << " ms, measured " << row.at("fwd_ms")
                           << "; backward " << backward << " ms, measured " << row.at("bwd_ms"));
    CHECK(forward == doctest::Approx(std::stod(row.at("fwd_ms"))).epsilon(0.05));
    CHECK(backward == doctest::Approx(std::stod(row.at("bwd_ms"))).epsilon(0.05));
  }
  CHECK(seen == 2);
}

TEST_CASE("layers of DIP's motivating example take what the paper prints, within 20 %") {
  // arXiv 2504.14145 §2: ViT 5B on 8 images 6.75 ms, 32B language model on 8192 tokens 10.5 ms.
  const std::vector<PlacedModule> modules = place_modules(load_model("vlm-m"), {.tp = 8});
  const Cluster cluster = load_cluster("h800-64");
  const auto total_ms = [&](std::size_t module, const WorkShape& shape) {
    const PartCost cost = cost_of(modules[module], Part::Block, shape, cluster);
    return (cost.f + cost.i + cost.w) * 1e3;
  };
  const double vit = total_ms(0, {.instances = 8,
                                  .tokens = 21'632,
                                  .output_tokens = 1352,
                                  .sequences = 8,
                                  .squares = 58'492'928});
  const double llm = total_ms(1, {.instances = 1,
                                  .tokens = 8192,
                                  .output_tokens = 8192,
                                  .sequences = 1,
                                  .squares = 67'108'864});
  MESSAGE("ViT layer " << vit << " ms (6.75), language-model layer " << llm << " ms (10.5)");
  CHECK(vit == doctest::Approx(6.75).epsilon(0.2));
  CHECK(llm == doctest::Approx(10.5).epsilon(0.2));
}
