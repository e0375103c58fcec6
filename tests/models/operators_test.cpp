// SPDX-License-Identifier: Apache-2.0
#include "models/operators.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

namespace {

using namespace dipsim;

struct Case {
  std::string model;
  std::size_t module;
  WorkShape shape;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"vlm-s",
       0,
       {.instances = 8,
        .tokens = 21'632,
        .output_tokens = 1352,
        .sequences = 8,
        .squares = 58'492'928}},
      {"vlm-m",
       1,
       {.instances = 1,
        .tokens = 8192,
        .output_tokens = 8192,
        .sequences = 2,
        .squares = 33'554'432}},
      {"t2v-s",
       0,
       {.instances = 2, .tokens = 400, .output_tokens = 400, .sequences = 2, .squares = 80'000}},
      {"t2v-l",
       1,
       {.instances = 2,
        .tokens = 8000,
        .output_tokens = 8000,
        .context_tokens = 400,
        .sequences = 2,
        .squares = 32'000'000,
        .cross_products = 1'600'000}},
  };
  return all;
}

PlacedModule placed(const Case& c, int tp) {
  return place_modules(load_model(c.model), {.tp = tp})[c.module];
}

double gemm_flops(const std::vector<Operator>& operators) {
  double flops = 0.0;
  for (const Operator& op : operators) {
    flops += std::holds_alternative<GemmShape>(op.shape) ? flops_of(op) : 0.0;
  }
  return flops;
}

double attention_flops(const std::vector<Operator>& operators) {
  double flops = 0.0;
  for (const Operator& op : operators) {
    flops += std::holds_alternative<AttentionShape>(op.shape) ? flops_of(op) : 0.0;
  }
  return flops;
}

int collectives(const std::vector<Operator>& operators, CollectiveKind kind) {
  int count = 0;
  for (const Operator& op : operators) {
    const auto* const traffic = std::get_if<GroupTraffic>(&op.shape);
    count += traffic != nullptr && traffic->kind == kind ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("the operators of all GPUs together do the FLOPs of the closed form") {
  for (const Case& c : cases()) {
    for (const int tp : {1, 2, 4}) {
      const PlacedModule module = placed(c, tp);
      const PartOperators block = operators_of(module, Part::Block, c.shape);
      const PartOperators first = operators_of(module, Part::First, c.shape);
      const PartOperators last = operators_of(module, Part::Last, c.shape);
      const double per_gpu =
          module.spec.layers * (gemm_flops(block.forward) + attention_flops(block.forward)) +
          gemm_flops(first.forward) + gemm_flops(last.forward);
      CHECK(tp * per_gpu == doctest::Approx(forward_flops(module, c.shape)).epsilon(1e-6));
    }
  }
}

TEST_CASE("each half of backward does the products of forward again, attention counts 2.5 times") {
  for (const Case& c : cases()) {
    const PartOperators block = operators_of(placed(c, 4), Part::Block, c.shape);
    CHECK(gemm_flops(block.input_gradient) == doctest::Approx(gemm_flops(block.forward)));
    CHECK(gemm_flops(block.weight_gradient) == doctest::Approx(gemm_flops(block.forward)));
    CHECK(attention_flops(block.input_gradient) ==
          doctest::Approx(2.5 * attention_flops(block.forward)));
    CHECK(attention_flops(block.weight_gradient) == 0.0);
  }
}

TEST_CASE("sequence parallelism gathers and scatters twice per block, three times per DiT block") {
  for (const Case& c : cases()) {
    const PlacedModule module = placed(c, 4);
    const int expected = module.spec.block == Block::Dit ? 3 : 2;
    const PartOperators block = operators_of(module, Part::Block, c.shape);
    for (const auto* list : {&block.forward, &block.input_gradient}) {
      CHECK(collectives(*list, CollectiveKind::AllGather) == expected);
      CHECK(collectives(*list, CollectiveKind::ReduceScatter) == expected);
    }
    CHECK(collectives(block.weight_gradient, CollectiveKind::AllGather) == 0);
  }
}

TEST_CASE("the input gradient of a patch embedding is not computed") {
  const Case& vit = cases()[0];
  const PartOperators first = operators_of(placed(vit, 4), Part::First, vit.shape);
  CHECK(gemm_flops(first.input_gradient) == 0.0);
  CHECK(gemm_flops(first.weight_gradient) == gemm_flops(first.forward));
}

TEST_CASE("more GPUs than key heads copy them") {
  const Case& llm = cases()[1];
  const PlacedModule module = placed(llm, 40);  // 40 query heads, 8 key heads
  const PartOperators block = operators_of(module, Part::Block, llm.shape);
  const auto& qkv = std::get<GemmShape>(block.forward[2].shape);
  CHECK(qkv.n == 3 * module.spec.head_dim);
}

TEST_CASE("no tokens, no operators") {
  const PlacedModule module = placed(cases()[0], 4);
  for (const Part part : {Part::First, Part::Block, Part::Last}) {
    const PartOperators operators = operators_of(module, part, WorkShape{});
    CHECK(operators.forward.empty());
    CHECK(operators.saved.empty());
    CHECK(operators.layer_input == 0);
  }
}

TEST_CASE("backward lists stand in reverse order of the forward list") {
  const PartOperators block = operators_of(placed(cases()[1], 4), Part::Block, cases()[1].shape);
  CHECK(block.forward.front().name == "attention norm");
  CHECK(block.input_gradient.back().name == "attention norm");
  CHECK(block.weight_gradient.front().name == "ffn down");
  CHECK(block.weight_gradient.back().name == "qkv");
}
