// SPDX-License-Identifier: Apache-2.0
// Experts, latent attention, windows, adapters, context parallelism: closed forms of parameters,
// FLOPs, bytes that travel and bytes that are kept.
#include "models/cost_model.hpp"
#include "models/ranks.hpp"
#include "tests/models/shipped_models.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace dipsim;
using namespace dipsim::test;

WorkShape sequences(std::int64_t count, std::int64_t length) {
  return {.instances = count,
          .tokens = count * length,
          .output_tokens = count * length,
          .sequences = count,
          .squares = count * length * length};
}

LmmModel language_model(const ModuleSpec& spec) {
  LmmModel model;
  model.name = spec.name;
  model.modules.push_back({.spec = spec,
                           .feed = Feed::Sequence,
                           .inputs = {},
                           .mask = AttentionMask::Causal,
                           .head = true});
  check_model(model, "test");
  return model;
}

PlacedModule placed(const ModuleSpec& spec, const ParallelPlan& plan = {}) {
  return place_modules(language_model(spec), plan).front();
}

double total(const ModuleSpec& spec) {
  double sum = 0.0;
  for (const double parameters : layer_parameters(placed(spec))) {
    sum += parameters;
  }
  return sum;
}

double flops(const std::vector<Operator>& operators) {
  double sum = 0.0;
  for (const Operator& op : operators) {
    sum += flops_of(op);
  }
  return sum;
}

std::vector<GroupTraffic> traffic(const std::vector<Operator>& operators, ParallelGroup group) {
  std::vector<GroupTraffic> found;
  for (const Operator& op : operators) {
    const auto* const one = std::get_if<GroupTraffic>(&op.shape);
    if (one != nullptr && one->group == group) {
      found.push_back(*one);
    }
  }
  return found;
}

std::int64_t saved(const PartOperators& part, const std::string& name) {
  std::int64_t bytes = 0;
  for (const SavedTensor& tensor : part.saved) {
    bytes += tensor.name == name ? tensor.bytes : 0;
  }
  return bytes;
}

/// A small module whose numbers are easy to follow.
ModuleSpec small() {
  ModuleSpec spec;
  spec.name = "small";
  spec.block = Block::Gated;
  spec.layers = 4;
  spec.hidden = 1024;
  spec.ffn = 4096;
  spec.heads = 8;
  spec.kv_groups = 8;
  spec.head_dim = 128;
  spec.vocabulary = 32'000;
  return spec;
}

ModuleSpec with_experts(int count, int chosen, int ffn) {
  ModuleSpec spec = small();
  spec.experts.count = count;
  spec.experts.chosen = chosen;
  spec.experts.ffn = ffn;
  return spec;
}

constexpr LayerKind kExperts{.experts = true, .window = false};
constexpr LayerKind kWindow{.experts = false, .window = true};

}  // namespace

TEST_CASE("published models have their published parameters, and active ones per token") {
  struct Published {
    std::string module;
    double total;
    double active;
  };

  // DeepSeek-V3 (arXiv 2412.19437) 671B and 37B; Qwen3 (arXiv 2505.09388) 30.5B and 3.3B, with the
  // embedding; gpt-oss (arXiv 2508.10925) Table 1.
  for (const Published& model : {Published{"deepseek-v3", 671.0e9, 37.0e9},
                                 Published{"qwen3-30b-a3b", 30.5e9, 3.3e9 - 2048.0 * 151'936},
                                 Published{"gpt-oss-20b", 20.91e9, 3.61e9}}) {
    CAPTURE(model.module);
    const ModuleSpec spec = load_module(model.module);
    CHECK(total(spec) == doctest::Approx(model.total).epsilon(0.003));
    CHECK(active_parameters(placed(spec)) == doctest::Approx(model.active).epsilon(0.02));
  }
}

TEST_CASE("operators of layers with experts, windows and latent attention do the closed form") {
  for (const std::string name : {"deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b"}) {
    CAPTURE(name);
    const ModuleSpec spec = load_module(name);
    const WorkShape shape = sequences(2, 4096);
    for (const int tp : {1, 2, 4}) {
      const PlacedModule module = placed(spec, {.tp = tp, .dp = 2, .ep = 2 * tp});
      double per_gpu = flops(operators_of(module, Part::First, shape).forward) +
                       flops(operators_of(module, Part::Last, shape).forward);
      for (int layer = 0; layer < spec.layers; ++layer) {
        per_gpu += flops(operators_of(module, Part::Block, shape, spec.kind_of(layer)).forward);
      }
      // Copied products of latent attention and the router run on the shard: once in all.
      CHECK(tp * per_gpu == doctest::Approx(forward_flops(module, shape)).epsilon(1e-6));
    }
  }
}

TEST_CASE("one expert that every token takes is a dense FFN behind a router") {
  const WorkShape shape = sequences(1, 4096);
  const PlacedModule dense = placed(small());
  const PlacedModule expert = placed(with_experts(1, 1, 4096));
  const Cluster cluster = load_cluster("h100-8");
  CHECK(parameters_of(expert, Part::Block, kExperts) == parameters_of(dense, Part::Block) + 1024.0);

  const auto products = [&](const PlacedModule& module, LayerKind kind) {
    double seconds = 0.0;
    const PartOperators part = operators_of(module, Part::Block, shape, kind);
    for (const auto* const list : {&part.forward, &part.input_gradient, &part.weight_gradient}) {
      for (const Operator& op : *list) {
        const auto* const gemm = std::get_if<GemmShape>(&op.shape);
        seconds +=
            gemm != nullptr && op.name != "router" ? operator_seconds(op, cluster, module) : 0.0;
      }
    }
    return seconds;
  };
  CHECK(products(expert, kExperts) == doctest::Approx(products(dense, {})).epsilon(1e-9));

  const PartOperators a = operators_of(dense, Part::Block, shape);
  const PartOperators b = operators_of(expert, Part::Block, shape, kExperts);
  CHECK(saved(a, "activation input") == saved(b, "activation input"));
  CHECK(saved(a, "activation output") == saved(b, "activation output"));
  for (const GroupTraffic& exchange : traffic(b.forward, ParallelGroup::Expert)) {
    CHECK(operator_seconds({"exchange", exchange}, cluster, expert) == 0.0);
  }
}

TEST_CASE("dispatch and combine send each token once per chosen expert, or as often as told") {
  ModuleSpec spec = with_experts(16, 4, 512);
  const WorkShape shape = sequences(2, 4096);
  const auto sent = [&](int tp) {
    const PlacedModule module = placed(spec, {.tp = tp, .dp = 8, .ep = 8});
    const PartOperators part = operators_of(module, Part::Block, shape, kExperts);
    const auto forward = traffic(part.forward, ParallelGroup::Expert);
    REQUIRE(forward.size() == 2);
    CHECK(traffic(part.input_gradient, ParallelGroup::Expert).size() == 2);
    CHECK(forward[0].kind == CollectiveKind::AllToAll);
    CHECK(forward[0].bytes == forward[1].bytes);
    return forward[0].bytes;
  };
  CHECK(sent(1) == 2 * 1024 * 8192 * 4);
  CHECK(sent(2) == 2 * 1024 * 8192 * 4 / 2);  // each GPU of a tensor-parallel group its own tokens
  spec.experts.copies = 1.5;
  CHECK(sent(1) == 2 * 1024 * 8192 * 3 / 2);
}

TEST_CASE("imbalance lengthens what runs on the rows of experts and what is kept of them") {
  ModuleSpec spec = with_experts(16, 4, 512);
  const WorkShape shape = sequences(2, 4096);
  const PartOperators even = operators_of(placed(spec), Part::Block, shape, kExperts);
  spec.experts.imbalance = 1.5;
  const PartOperators uneven = operators_of(placed(spec), Part::Block, shape, kExperts);
  CHECK(2 * saved(uneven, "dispatched rows") == 3 * saved(even, "dispatched rows"));
  const double expert = 2.0 * 8192 * 4 * 3 * 1024 * 512;
  CHECK(flops(uneven.forward) - flops(even.forward) == doctest::Approx(0.5 * expert));
}

TEST_CASE("weights of experts are shared out over ep, and their optimizer over those with copies") {
  const ModuleSpec spec = with_experts(16, 4, 512);
  const ParallelPlan plan{.tp = 2, .dp = 4, .ep = 4};
  const ModelLowering lowering(language_model(spec), load_cluster("h100-8"), plan);
  const double experts = 16.0 * 3 * 1024 * 512;
  const double dense = 1024.0 * 1024 * 4 + 1024 * 16;
  const ChunkMemory memory = lowering.memory(layers(0, 1, 1));
  CHECK(memory.weights.count == static_cast<std::int64_t>(2 * (experts / 4 + dense / 2)));
  CHECK(memory.gradients.count == 2 * memory.weights.count);
  // Two GPUs hold the same experts (tp 2 × dp 4 / ep 4), four the same dense weights.
  CHECK(memory.optimizer.count == static_cast<std::int64_t>(12 * (experts / 8 + dense / 8)));
}

TEST_CASE("latent attention keeps heads of 192 and values of 128, and has its parameters") {
  const ModuleSpec spec = load_module("deepseek-v3");
  const PlacedModule module = placed(spec);
  const double attention = 7168.0 * 1536 + 1536.0 * 128 * 192 + 7168.0 * (512 + 64) +
                           512.0 * 128 * (128 + 128) + 128.0 * 128 * 7168;
  CHECK(parameters_of(module, Part::Block) == attention + 3.0 * 7168 * 18432);
  const PartOperators part = operators_of(module, Part::Block, sequences(1, 4096));
  CHECK(saved(part, "query") == 2LL * 4096 * 128 * 192);
  CHECK(saved(part, "key and value") == 2LL * 4096 * 128 * (192 + 128));
  CHECK(saved(part, "attention output") == 2LL * 4096 * 128 * 128);
}

TEST_CASE("a window counts the pairs inside it, in the layers that have one") {
  ModuleSpec spec = small();
  spec.window = {.tokens = 128, .full_every = 2};
  CHECK(spec.kind_of(0).window);
  CHECK_FALSE(spec.kind_of(1).window);
  spec.window.full_every = 0;
  CHECK(spec.kind_of(1).window);
  const WorkShape shape = sequences(2, 4096);
  const double inside = 2.0 * (4096.0 * 128 - 0.5 * 128 * 127);
  CHECK(counted_pairs(shape, AttentionMask::Causal, 128) == inside);
  CHECK(counted_pairs(shape, AttentionMask::Causal, 8192) ==
        counted_pairs(shape, AttentionMask::Causal));
  const PlacedModule module = placed(spec);
  CHECK(block_forward_flops(module, shape) - block_forward_flops(module, shape, kWindow) ==
        doctest::Approx(4.0 * 1024 * (2.0 * 4096 * 4096 / 2 - inside)));
  const Cluster cluster = load_cluster("h100-8");
  CHECK(cost_of(module, Part::Block, shape, cluster, kWindow).f <
        cost_of(module, Part::Block, shape, cluster).f);
}

TEST_CASE("context parallelism shares out tokens and pairs, and exchanges keys and values") {
  const WorkShape shape = sequences(2, 8192);
  const PlacedModule whole = placed(small());
  const PlacedModule shared = placed(small(), {.cp = 4});
  const PartOperators a = operators_of(whole, Part::Block, shape);
  const PartOperators b = operators_of(shared, Part::Block, shape);
  CHECK(4 * flops(b.forward) == doctest::Approx(flops(a.forward)));
  CHECK(4 * saved(b, "key and value") == saved(a, "key and value"));
  CHECK(traffic(a.forward, ParallelGroup::Context).empty());
  const auto exchange = traffic(b.forward, ParallelGroup::Context);
  REQUIRE(exchange.size() == 1);
  CHECK(exchange[0].bytes == 2LL * 2 * 8192 * (1024 + 1024));
  CHECK(traffic(b.input_gradient, ParallelGroup::Context).size() == 2);
}

TEST_CASE("a ring hides the exchange behind attention, a gather does not") {
  Cluster cluster = load_cluster("h100-64");
  cluster.gpu.profile.host_issue.kernel_us.value = 0.0;  // short work is bound by the host else
  const auto forward = [&](ContextExchange context, std::int64_t length) {
    const PlacedModule module = placed(small(), {.tp = 1, .cp = 8, .context = context});
    return cost_of(module, Part::Block, sequences(1, length), cluster).f;
  };
  // Attention grows with the square of the length, the exchange with the length.
  const PlacedModule module = placed(small(), {.cp = 8});
  const auto exchange = [&](std::int64_t length) {
    const PartOperators part = operators_of(module, Part::Block, sequences(1, length));
    const GroupTraffic one = traffic(part.forward, ParallelGroup::Context).front();
    return operator_seconds({"exchange", one}, cluster, module);
  };
  CHECK(forward(ContextExchange::AllGather, 262'144) - forward(ContextExchange::Ring, 262'144) ==
        doctest::Approx(exchange(262'144)));
  const double shown =
      forward(ContextExchange::AllGather, 8192) - forward(ContextExchange::Ring, 8192);
  CHECK(shown > 0.0);
  CHECK(shown < exchange(8192));
}

TEST_CASE("ranks hold the GPUs of tp and cp, and cp shares weights like replicas do") {
  const ParallelPlan plan{.tp = 2, .pp = 2, .dp = 2, .cp = 2};
  const ModelLowering lowering(language_model(small()), load_cluster("h100-16"), plan);
  const Problem& problem = lowering.problem();
  REQUIRE(problem.ranks.size() == 4);
  CHECK(problem.cells[problem.ranks[1].cells.front().row()].size() == 4);
  CHECK(problem.ranks[1].cp == 2);
  const ChunkMemory memory = lowering.memory(layers(0, 1, 1));
  const double block = 4.0 * 1024 * 1024 + 3.0 * 1024 * 4096;
  CHECK(memory.weights.count == static_cast<std::int64_t>(2 * block / 2));
  CHECK(memory.optimizer.count == static_cast<std::int64_t>(12 * block / 2 / 4));
  CHECK(replica_group(load_cluster("h100-16"), blocks_of(1, plan).front()).members == 4);
}

TEST_CASE("with adapters frozen products have no gradient of weights, and little is trained") {
  ModuleSpec spec = small();
  const WorkShape shape = sequences(1, 4096);
  const PlacedModule dense = placed(spec);
  spec.lora_rank = 16;
  const PlacedModule module = placed(spec);
  const ParameterCount count = count_parameters(module, Part::Block);
  CHECK(count.dense == parameters_of(dense, Part::Block));
  // Beside q, k, v and output, and up, gate and down: rank · (in + out) each.
  CHECK(count.trained_dense == 16.0 * (4 * 2048 + 3 * (1024 + 4096)));
  CHECK(count_parameters(module, Part::First).trained_dense == 0.0);
  const PartOperators part = operators_of(module, Part::Block, shape);
  const double frozen = flops(operators_of(dense, Part::Block, shape).forward);
  CHECK(flops(part.weight_gradient) < 0.02 * frozen);
  CHECK(flops(part.weight_gradient) > 0.0);
  CHECK(operators_of(module, Part::Last, shape).weight_gradient.empty());

  const ModelLowering lowering(language_model(spec), load_cluster("h100-8"), {});
  const ChunkMemory memory = lowering.memory(layers(0, 1, 1));
  CHECK(memory.weights.count == static_cast<std::int64_t>(2 * count.dense));
  CHECK(memory.optimizer.count == static_cast<std::int64_t>(12 * count.trained_dense));
  Microbatch one;
  one.documents = {4096};
  CHECK(lowering.model_flops(make_batch(std::vector{one}, lowering.model().feeds(), 1)) <
        2.1 * forward_flops(dense, shape));
}

TEST_CASE("what selective recomputation drops is what the module names") {
  const WorkShape shape = sequences(1, 4096);
  const Cluster cluster = load_cluster("h100-8");
  ModuleSpec spec = load_module("deepseek-v3");
  const auto dropped = [&](const RecomputedParts& parts, LayerKind kind) {
    spec.recomputed = parts;
    return cost_of(placed(spec), Part::Block, shape, cluster, kind).cheap;
  };
  CHECK(dropped({}, kExperts) == 0);
  // Fused attention in bf16: the product behind it needs the output anyway.
  CHECK(dropped({.core_attention = true}, kExperts) == 4LL * 4096 * 128);
  CHECK(dropped({.latent_up = true}, kExperts) == 2LL * 4096 * 128 * (192 + 192 + 128));
  CHECK(dropped({.expert_activations = true}, kExperts) == 2LL * 4096 * 8 * 2048);
  CHECK(dropped({.expert_activations = true}, {}) == 0);
  CHECK(dropped({.mlp = true}, kExperts) == 0);
  CHECK(dropped({.mlp = true}, {}) == 2LL * 4096 * (7168 + 3 * 18432));
}

TEST_CASE("products in fp8 keep their inputs in fp8") {
  ModuleSpec spec = small();
  const WorkShape shape = sequences(1, 4096);
  const PartOperators bf16 = operators_of(placed(spec), Part::Block, shape);
  spec.products = DataType::Fp8;
  const PartOperators fp8 = operators_of(placed(spec), Part::Block, shape);
  CHECK(2 * saved(fp8, "norm output") == saved(bf16, "norm output"));
  CHECK(2 * saved(fp8, "activation output") == saved(bf16, "activation output"));
  CHECK(saved(fp8, "activation input") == saved(bf16, "activation input"));
  CHECK(saved(fp8, "input of attention output") == 4096LL * 1024);
}

TEST_CASE("plans for experts and contexts that cannot be are errors with the nearest legal value") {
  const auto refusal = [](const ModuleSpec& spec, const ParallelPlan& plan) {
    const Error error =
        error_of([&] { ModelLowering(language_model(spec), load_cluster("h100-16"), plan); });
    CHECK(error.kind() == ErrorKind::Input);
    return std::string(error.what());
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    return text.find(part) != std::string::npos;
  };
  const ModuleSpec spec = with_experts(12, 2, 512);
  CHECK(contains(refusal(spec, {.dp = 8, .ep = 8}), "does not divide the 12 experts of small"));
  CHECK(contains(refusal(spec, {.dp = 8, .ep = 8}), "nearest legal: 4"));
  CHECK(contains(refusal(spec, {.dp = 4, .ep = 8}), "does not divide the tp × cp × dp = 4 GPUs"));
  CHECK(contains(refusal(small(), {.dp = 8, .ep = 2}), "no module has any; nearest legal: 1"));
  CHECK(contains(refusal(small(), {.tp = 4, .cp = 3}), "nearest legal: 2"));
  CHECK(contains(refusal(small(), {.tp = 4, .dp = 2, .cp = 4}), "with this tp and cp"));
  CHECK(contains(refusal(small(), {.ep = 0}), "at least 1"));
  CHECK(contains(refusal(spec, {.tp = 2, .sequence_parallel = false}), "sequence_parallel"));
}

TEST_CASE("experts and latent attention that do not fit together are refused") {
  const auto refusal = [](const ModuleSpec& spec) {
    return std::string(error_of([&] { language_model(spec); }).what());
  };
  CHECK(refusal(with_experts(4, 5, 512)).find("nearest legal: 4") != std::string::npos);
  CHECK(refusal(with_experts(4, 0, 512)).find("nearest legal: 1") != std::string::npos);
  CHECK(refusal(with_experts(4, 1, 0)).find("at least 1") != std::string::npos);
  ModuleSpec latent = small();
  latent.latent = {.kv_rank = 512, .query_rank = 0, .rope_dim = 128};
  CHECK(refusal(latent).find("nearest legal: 127") != std::string::npos);
  latent.kv_groups = 4;
  CHECK(refusal(latent).find("nearest legal: 8") != std::string::npos);
}

TEST_CASE(
    "biases of experts in kernels of their own move what splitting, adding and joining move") {
  ModuleSpec spec = with_experts(16, 4, 512);
  const auto moved = [&](const std::vector<Operator>& operators) {
    std::int64_t bytes = 0;
    for (const Operator& op : operators) {
      const auto* const memory = std::get_if<MemoryTraffic>(&op.shape);
      bytes += memory != nullptr ? memory->bytes : 0;
    }
    return bytes;
  };
  const WorkShape shape = sequences(1, 4096);
  const PartOperators without = operators_of(placed(spec), Part::Block, shape, kExperts);
  spec.experts.separate_biases = true;
  const PartOperators with = operators_of(placed(spec), Part::Block, shape, kExperts);
  const std::int64_t rows = 4096 * 4;
  CHECK(moved(with.forward) - moved(without.forward) == rows * (8 * 1024 + 24 * 1024));
  CHECK(moved(with.input_gradient) - moved(without.input_gradient) ==
        rows * (8 * 1024 + 40 * 1024));
}
