// SPDX-License-Identifier: Apache-2.0
#include "models/part_builder.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dipsim {

namespace {

// Bytes per element.
constexpr std::int64_t kBf16 = 2;
constexpr std::int64_t kFp32 = 4;
constexpr std::int64_t kMask = 1;

/// What an RMS norm of separate kernels moves, in tensors of bf16: casts to fp32 (1 + 2), squares
/// (2 + 2), means (2), scales (2 + 2), casts back (2 + 1), and multiplies by its weights (1 + 1).
constexpr std::int64_t kEagerNormTensors = 18;

/// A weight gradient is added to an fp32 buffer: read and written.
constexpr int kAccumulatedBytes = 2 * static_cast<int>(kFp32);

}  // namespace

PartBuilder::PartBuilder(const PlacedModule& module, const WorkShape& shape)
    : module_(module), shape_(shape) {}

std::int64_t PartBuilder::sharded(std::int64_t bytes) const {
  return module_.sequence_parallel ? (bytes + module_.tp - 1) / module_.tp : bytes;
}

void PartBuilder::norm(std::string_view name, std::int64_t tokens, std::int64_t width) {
  const std::int64_t tensor = sharded(kBf16 * tokens * width);
  const std::int64_t passes = module_.spec.fused_elementwise ? 2 : kEagerNormTensors;
  part_.forward.push_back({name, MemoryTraffic{passes * tensor}});
  // Reads input and output gradient and writes one; then the gradient of the residual stream is
  // added to that, by a kernel of its own.
  part_.input_gradient.push_back({name, MemoryTraffic{(passes + 4) * tensor}});
  if (!written_out()) {
    part_.selective.push_back({name, MemoryTraffic{passes * tensor}});
  }
  save("norm input", tensor, false, false);
  save("norm output", tensor, !written_out(), true);
}

void PartBuilder::gather(std::string_view name, std::int64_t tokens, std::int64_t width) {
  const std::int64_t bytes = kBf16 * tokens * width;
  if (module_.sequence_parallel) {
    gather_columns(name, tokens, width);
    scratch(2 * bytes);  // the gathered input, later also its gradient before it is scattered
  } else {
    part_.input_gradient.push_back({name, GroupTraffic{CollectiveKind::AllReduce, bytes}});
    scratch(bytes);  // its gradient before it is added up
  }
}

void PartBuilder::gather_columns(std::string_view name, std::int64_t tokens, std::int64_t width) {
  const std::int64_t bytes = kBf16 * tokens * width;
  part_.forward.push_back({name, GroupTraffic{CollectiveKind::AllGather, bytes}});
  part_.input_gradient.push_back({name, GroupTraffic{CollectiveKind::ReduceScatter, bytes}});
}

void PartBuilder::scatter(std::string_view name, std::int64_t tokens, std::int64_t width) {
  const std::int64_t bytes = kBf16 * tokens * width;
  if (!module_.sequence_parallel) {
    part_.forward.push_back({name, GroupTraffic{CollectiveKind::AllReduce, bytes}});
    return;
  }
  part_.forward.push_back({name, GroupTraffic{CollectiveKind::ReduceScatter, bytes}});
  part_.input_gradient.push_back({name, GroupTraffic{CollectiveKind::AllGather, bytes}});
}

void PartBuilder::linear(std::string_view name, std::int64_t tokens, std::int64_t in,
                         std::int64_t out, bool gradient_of_input) {
  part_.forward.push_back({name, GemmShape{.m = tokens, .n = out, .k = in}});
  if (gradient_of_input) {
    part_.input_gradient.push_back({name, GemmShape{.m = tokens, .n = in, .k = out}});
  }
  if (module_.spec.fused_accumulation) {
    part_.weight_gradient.push_back(
        {name, GemmShape{.m = in, .n = out, .k = tokens, .output_bytes = kAccumulatedBytes}});
    return;
  }
  // Lists of gradients are turned round at the end: the sum stands before its product.
  part_.weight_gradient.push_back({"gradient sum", MemoryTraffic{3 * kBf16 * in * out}});
  part_.weight_gradient.push_back({name, GemmShape{.m = in, .n = out, .k = tokens}});
}

void PartBuilder::linear_by_columns(std::string_view name, std::int64_t tokens, std::int64_t in,
                                    std::int64_t out) {
  linear(name, tokens, in, out, true);
  part_.held_for_weights += sharded(kBf16 * tokens * in) + kBf16 * tokens * out;
  scratch(kBf16 * tokens * out);
}

void PartBuilder::linear_by_rows(std::string_view name, std::int64_t tokens, std::int64_t in,
                                 std::int64_t out) {
  linear(name, tokens, in, out, true);
  part_.held_for_weights += kBf16 * tokens * in + sharded(kBf16 * tokens * out);
}

void PartBuilder::product_again(std::string_view name, std::int64_t tokens, std::int64_t in,
                                std::int64_t out) {
  if (module_.spec.products_again) {
    part_.selective.push_back({name, GemmShape{.m = tokens, .n = out, .k = in}});
  }
}

void PartBuilder::linear_on_shard(std::string_view name, std::int64_t tokens, std::int64_t in,
                                  std::int64_t out, bool gradient_of_input) {
  const std::int64_t local = sharded(tokens);
  linear(name, local, in, out, gradient_of_input);
  part_.held_for_weights += kBf16 * local * (in + out);
}

void PartBuilder::embedding(std::string_view name, std::int64_t tokens, std::int64_t width) {
  const std::int64_t traffic = 2 * kBf16 * tokens * width;
  part_.forward.push_back({name, MemoryTraffic{traffic}});
  part_.weight_gradient.push_back({name, MemoryTraffic{traffic}});
}

void PartBuilder::elementwise(std::string_view name, std::int64_t forward_bytes,
                              std::int64_t backward_bytes) {
  if (forward_bytes > 0) {
    part_.forward.push_back({name, MemoryTraffic{forward_bytes}});
  }
  if (backward_bytes > 0) {
    part_.input_gradient.push_back({name, MemoryTraffic{backward_bytes}});
  }
}

void PartBuilder::activation(std::string_view name, std::int64_t tokens, std::int64_t inputs,
                             std::int64_t outputs) {
  const std::int64_t in = kBf16 * tokens * inputs;
  const std::int64_t out = kBf16 * tokens * outputs;
  // Backward reads the inputs and the output gradient and writes the input gradients.
  // A gate of separate kernels writes the activated half and reads it again.
  const std::int64_t gate = inputs > outputs && !module_.spec.fused_elementwise ? 2 * out : 0;
  elementwise(name, in + out + gate, 2 * in + out + 2 * gate);
  if (!written_out()) {
    part_.selective.push_back({name, MemoryTraffic{in + out + gate}});
  }
  save("activation input", in, false, false);
  save("activation output", out, !written_out(), true);
}

void PartBuilder::attention(std::string_view name, std::int64_t tokens, std::int64_t key_tokens,
                            double pairs, bool causal) {
  const std::int64_t query = module_.local_query_width();
  save("query", kBf16 * tokens * query, false, false);
  save("key and value", 2 * kBf16 * key_tokens * module_.local_kv_width(), false, false);
  save("attention output", kBf16 * tokens * query, false, written_out());
  if (written_out()) {
    written_out_attention();
    return;
  }
  AttentionShape shape{.tokens = tokens,
                       .pairs = pairs,
                       .heads = module_.local_heads(),
                       .head_dim = module_.spec.head_dim,
                       .causal = causal,
                       .kernel = module_.spec.attention};
  part_.forward.push_back({name, shape});
  shape.backward = true;
  part_.input_gradient.push_back({name, shape});
  save("log-sum-exp", kFp32 * tokens * module_.local_heads(), false, false);
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
  part_.selective.insert(part_.selective.end(), forward.begin(), forward.end());
  const std::vector<Operator> backward = {{"gradient of keys", deep},
                                          {"gradient of queries", deep},
                                          {"softmax", MemoryTraffic{3 * kBf16 * scores}},
                                          {"attention dropout", MemoryTraffic{dropout}},
                                          {"gradient of scores", wide},
                                          {"gradient of values", deep},
                                          {"gradient layout", MemoryTraffic{6 * context}}};
  part_.input_gradient.insert(part_.input_gradient.end(), backward.begin(), backward.end());
  save("softmax", kBf16 * scores, true, false);
  if (module_.spec.dropout) {
    save("attention dropout", (kBf16 + kMask) * scores, true, false);
  }
}

void PartBuilder::residual(std::string_view name) {
  const std::int64_t elements = sharded(shape_.tokens * module_.spec.hidden);
  const bool dropout = module_.spec.dropout;
  elementwise(name, (3 * kBf16 + (dropout ? kMask : 0)) * elements,
              dropout ? (2 * kBf16 + kMask) * elements : 0);
  if (dropout) {
    save("dropout mask", kMask * elements, false, false);
  }
}

void PartBuilder::save(std::string_view name, std::int64_t bytes, bool cheap,
                       bool for_weights_only) {
  part_.saved.push_back({name, bytes, cheap, for_weights_only});
}

void PartBuilder::scratch(std::int64_t bytes) {
  part_.transient = std::max(part_.transient, bytes);
}

PartOperators PartBuilder::finish() {
  std::ranges::reverse(part_.input_gradient);
  std::ranges::reverse(part_.weight_gradient);
  part_.layer_input = sharded(kBf16 * shape_.tokens * module_.spec.hidden);
  return std::move(part_);
}

}  // namespace dipsim
