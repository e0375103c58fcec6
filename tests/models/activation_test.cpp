// SPDX-License-Identifier: Apache-2.0
// Activation memory against the formulas of Korthikanti et al., arXiv 2205.05198 §4 and §5: bytes
// per layer of a GPT block with dropout, FFN 4h, under tensor and sequence parallelism.
#include "models/cost_model.hpp"

#include <doctest/doctest.h>

#include <array>

namespace {

using namespace dipsim;

struct Gpt {
  int hidden;
  int heads;
};

constexpr int kTp = 8;
constexpr double kSequence = 2048.0;

PlacedModule module_of(const Gpt& gpt, bool flash, bool dropout = true) {
  LmmModel model;
  model.modules.push_back(
      {.spec = {.name = "gpt",
                .block = Block::Plain,
                .layers = 4,
                .hidden = gpt.hidden,
                .ffn = 4 * gpt.hidden,
                .heads = gpt.heads,
                .kv_groups = gpt.heads,
                .head_dim = gpt.hidden / gpt.heads,
                .attention = flash ? AttentionKernel::Fused : AttentionKernel::WrittenOut,
                .dropout = dropout},
       .inputs = {},
       .mask = AttentionMask::Causal});
  return place_modules(model, {.tp = kTp})[0];
}

WorkShape sequences(std::int64_t count) {
  return {.instances = count,
          .tokens = count * 2048,
          .output_tokens = count * 2048,
          .sequences = count,
          .squares = count * 2048 * 2048};
}

PartCost block_cost(const PlacedModule& module, std::int64_t count) {
  return cost_of(module, Part::Block, sequences(count), load_cluster("a100-8"));
}

constexpr std::array<Gpt, 4> kGpts = {{{6144, 64}, {12'288, 96}, {20'480, 128}, {25'600, 160}}};

}  // namespace

TEST_CASE("with attention written out a block keeps sbh/t (34 + 5as/h)") {
  for (const Gpt& gpt : kGpts) {
    const double sbh = kSequence * 4 * gpt.hidden;
    const double expected = sbh / kTp * (34.0 + 5.0 * gpt.heads * kSequence / gpt.hidden);
    CHECK(static_cast<double>(block_cost(module_of(gpt, false), 4).kept) ==
          doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("selective recomputation of the attention core leaves 34 sbh/t") {
  for (const Gpt& gpt : kGpts) {
    const PartCost cost = block_cost(module_of(gpt, false), 1);
    CHECK(static_cast<double>(cost.kept - cost.cheap) ==
          doctest::Approx(34.0 * kSequence * gpt.hidden / kTp).epsilon(1e-6));
  }
}

TEST_CASE("fused attention keeps 34 sbh/t and four bytes per token and head") {
  for (const Gpt& gpt : kGpts) {
    const double expected = (34.0 * kSequence * gpt.hidden + 4.0 * kSequence * gpt.heads) / kTp;
    CHECK(static_cast<double>(block_cost(module_of(gpt, true), 1).kept) ==
          doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("without dropout a block keeps two masks less") {
  const PartCost with = block_cost(module_of(kGpts[1], true, true), 1);
  const PartCost without = block_cost(module_of(kGpts[1], true, false), 1);
  CHECK(static_cast<double>(with.kept - without.kept) == 2.0 * kSequence * 12'288 / kTp);
}

TEST_CASE("full recomputation keeps the layer input, 2 sbh/t under sequence parallelism") {
  for (const Gpt& gpt : kGpts) {
    CHECK(static_cast<double>(block_cost(module_of(gpt, true), 3).layer_input) ==
          2.0 * 3 * kSequence * gpt.hidden / kTp);
  }
}

TEST_CASE("recomputing norms and activation function saves 12 sbh/t of a block") {
  const PartCost cost = block_cost(module_of(kGpts[1], true), 1);
  CHECK(static_cast<double>(cost.cheap) == 12.0 * kSequence * 12'288 / kTp);
}

TEST_CASE("from I to W a block holds 32 sbh/t (arXiv 2401.10241 §2)") {
  for (const Gpt& gpt : kGpts) {
    CHECK(static_cast<double>(block_cost(module_of(gpt, true), 1).held_for_weights) ==
          doctest::Approx(32.0 * kSequence * gpt.hidden / kTp).epsilon(1e-6));
  }
}

TEST_CASE("a frozen module keeps nothing for its weights") {
  PlacedModule module = module_of(kGpts[1], true);
  const PartCost trained = block_cost(module, 1);
  module.trained = false;
  const PartCost frozen = block_cost(module, 1);
  CHECK(frozen.w == 0.0);
  CHECK(frozen.held_for_weights == 0);
  CHECK(frozen.i == trained.i);
  CHECK(static_cast<double>(trained.kept - frozen.kept) == 12.0 * kSequence * 12'288 / kTp);
}

TEST_CASE("where no gradient passes nothing is kept") {
  PlacedModule module = module_of(kGpts[1], true);
  module.trained = false;
  module.backward = false;
  const PartCost cost = block_cost(module, 1);
  CHECK(cost.f > 0.0);
  CHECK(cost.i == 0.0);
  CHECK(cost.kept == 0);
}

TEST_CASE("head and loss keep fp32 probabilities of their share of the vocabulary") {
  LmmModel model = load_model("vlm-s");
  const auto kept = [&](bool head) {
    model.modules[1].head = head;
    return cost_of(place_modules(model, {.tp = 4})[1], Part::Last, sequences(4),
                   load_cluster("h800-64"))
        .kept;
  };
  CHECK(kept(true) - kept(false) == std::int64_t{4} * 8192 * 128'256 / 4);
}
