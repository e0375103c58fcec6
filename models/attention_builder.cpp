// SPDX-License-Identifier: Apache-2.0
// Attention: the part of PartBuilder that knows its kernels.
#include "models/element_bytes.hpp"
#include "models/part_builder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace dipsim {

void PartBuilder::context_exchange(std::string_view name, std::int64_t key_tokens,
                                   std::int64_t width) {
  if (module_.cp == 1) {
    return;
  }
  GroupTraffic traffic{.kind = CollectiveKind::AllGather,
                       .bytes = kBf16 * key_tokens * width * module_.cp,
                       .group = ParallelGroup::Context};
  part_.forward.push_back({name, traffic});
  part_.input_gradient.push_back({name, traffic});  // they were not kept
  traffic.kind = CollectiveKind::ReduceScatter;
  part_.input_gradient.push_back({name, traffic});
  // A ring holds the piece in use and the next one, with their gradients.
  scratch(2 * kBf16 * key_tokens * width *
          (module_.context == ContextExchange::Ring ? 2 : module_.cp));
}

void PartBuilder::save_heads(std::int64_t tokens, std::int64_t key_tokens) {
  save("query", kBf16 * tokens * module_.local_query_width(), false, false);
  save("key and value",
       kBf16 * key_tokens * (module_.local_kv_width() + module_.local_value_width()), false, false);
}

AttentionShape PartBuilder::fused_shape(std::int64_t tokens, double pairs, bool causal) const {
  const ModuleSpec& spec = module_.spec;
  AttentionShape shape{.tokens = tokens,
                       .pairs = pairs,
                       .heads = module_.local_heads(),
                       .head_dim = spec.head_dim,
                       .causal = causal,
                       .value_dim = spec.value_dim,
                       .kernel = spec.attention};
  if (kind_.window) {
    shape.window = spec.window.tokens;
    shape.sequences = std::max<std::int64_t>(1, shape_.sequences);
  }
  return shape;
}

void PartBuilder::save_input_of_product(std::string_view name, std::int64_t elements, bool cheap) {
  if (const int bytes = bytes_of(module_.spec.products); bytes != kBf16) {
    save(name, bytes * elements, cheap, true);
  }
}

void PartBuilder::attention(std::string_view name, std::int64_t tokens, std::int64_t key_tokens,
                            double pairs, bool causal) {
  const std::int64_t out = tokens * module_.local_attention_width();
  const Mark before = mark();
  if (written_out()) {
    save("attention output", kBf16 * out, false, true);
    written_out_attention();
    return;
  }
  context_exchange("context exchange", key_tokens,
                   module_.local_kv_width() + module_.local_value_width());
  AttentionShape shape = fused_shape(tokens, pairs, causal);
  part_.forward.push_back({name, shape});
  shape.backward = true;
  part_.input_gradient.push_back({name, shape});
  save("attention output", kBf16 * out, false, false);
  save("log-sum-exp", kFp32 * tokens * module_.local_heads(), false, false);
  if (recomputed_.core_attention) {
    // In bf16 the product behind it needs the output anyway.
    constexpr std::array<std::string_view, 1> kOutput = {"attention output"};
    const bool copied = bytes_of(module_.spec.products) != kBf16;
    recompute_since(before, std::span(kOutput.data(), copied ? 0U : 1U));
  }
  save_input_of_product("input of attention output", out, false);
}

/// Scores in memory, as before fused kernels: batched products, and softmax and dropout bound by
/// memory. Causal masking saves nothing. Kept: softmax, and with dropout its mask and its output
/// (the 5·a·s² term of arXiv 2205.05198 eq. 1).
void PartBuilder::written_out_attention() {
  if (shape_.sequences == 0) {
    return;
  }
  const std::int64_t heads = module_.local_heads();
  const auto side = static_cast<std::int64_t>(std::llround(
      std::sqrt(static_cast<double>(shape_.squares) / static_cast<double>(shape_.sequences))));
  const std::int64_t batch = shape_.sequences * heads;
  const std::int64_t scores = shape_.squares * heads;
  const GemmShape wide{.m = side, .n = side, .k = module_.spec.head_dim, .batch = batch};
  const GemmShape deep{.m = side, .n = module_.spec.head_dim, .k = side, .batch = batch};
  const std::int64_t context = kBf16 * shape_.tokens * module_.local_query_width();
  const std::int64_t dropout = module_.spec.dropout ? (2 * kBf16 + kMask) * scores : 0;
  const std::vector<Operator> forward = {{"scores", wide},
                                         {"softmax", MemoryTraffic{2 * kBf16 * scores}},
                                         {"attention dropout", MemoryTraffic{dropout}},
                                         {"attention over values", deep},
                                         {"attention layout", MemoryTraffic{2 * context}}};
  part_.forward.insert(part_.forward.end(), forward.begin(), forward.end());
  if (recomputed_.core_attention) {
    part_.selective.insert(part_.selective.end(), forward.begin(), forward.end());
  }
  const std::vector<Operator> backward = {{"gradient of keys", deep},
                                          {"gradient of queries", deep},
                                          {"softmax", MemoryTraffic{3 * kBf16 * scores}},
                                          {"attention dropout", MemoryTraffic{dropout}},
                                          {"gradient of scores", wide},
                                          {"gradient of values", deep},
                                          {"gradient layout", MemoryTraffic{6 * context}}};
  part_.input_gradient.insert(part_.input_gradient.end(), backward.begin(), backward.end());
  save("softmax", kBf16 * scores, recomputed_.core_attention, false);
  if (module_.spec.dropout) {
    save("attention dropout", (kBf16 + kMask) * scores, recomputed_.core_attention, false);
  }
}

}  // namespace dipsim
