// SPDX-License-Identifier: Apache-2.0
#include "models/part_builder.hpp"

#include "models/element_bytes.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dipsim {

namespace {

/// What an RMS norm of separate kernels moves, in tensors of bf16: casts to fp32 (1 + 2), squares
/// (2 + 2), means (2), scales (2 + 2), casts back (2 + 1), and multiplies by its weights (1 + 1).
constexpr std::int64_t kEagerNormTensors = 18;

/// A weight gradient is added to an fp32 buffer: read and written.
constexpr int kAccumulatedBytes = 2 * static_cast<int>(kFp32);

/// Selective recomputation runs again what is cheap: the core of written-out attention (arXiv
/// 2205.05198 §5); where attention is fused, norms and activation functions.
RecomputedParts recomputed_by(const ModuleSpec& spec) {
  if (spec.recomputed) {
    return *spec.recomputed;
  }
  const bool written_out = spec.attention == AttentionKernel::WrittenOut;
  return {.core_attention = written_out,
          .norms = !written_out,
          .activations = !written_out,
          .expert_activations = !written_out};
}

}  // namespace

PartBuilder::PartBuilder(const PlacedModule& module, Part part, const WorkShape& shape,
                         LayerKind kind)
    : module_(module),
      whole_(shape),
      shape_(share_of_context(shape, module.cp)),
      kind_(kind),
      recomputed_(recomputed_by(module.spec)),
      in_block_(part == Part::Block) {}

PartBuilder::Mark PartBuilder::mark() const {
  return {.forward = part_.forward.size(),
          .selective = part_.selective.size(),
          .saved = part_.saved.size()};
}

void PartBuilder::recompute_since(const Mark& mark, std::span<const std::string_view> kept) {
  part_.selective.resize(mark.selective);
  const auto first = part_.forward.begin() + static_cast<std::ptrdiff_t>(mark.forward);
  part_.selective.insert(part_.selective.end(), first, part_.forward.end());
  for (std::size_t i = mark.saved; i < part_.saved.size(); ++i) {
    part_.saved[i].cheap = std::ranges::find(kept, part_.saved[i].name) == kept.end();
  }
}

double PartBuilder::pairs() const {
  return counted_pairs(whole_, module_.mask, kind_.window ? module_.spec.window.tokens : 0) /
         module_.cp;
}

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
  if (recomputed_.norms) {
    part_.selective.push_back({name, MemoryTraffic{passes * tensor}});
  }
  save("norm input", tensor, false, false);
  // The kernel writes its output in the type of the product behind it (TransformerEngine).
  save("norm output", tensor * bytes_of(module_.spec.products) / kBf16, recomputed_.norms, true);
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
  const GemmShape shape{
      .m = tokens, .n = out, .k = in, .type = in_block_ ? module_.spec.products : DataType::Bf16};
  part_.forward.push_back({name, shape});
  if (gradient_of_input) {
    GemmShape gradient = shape;
    std::swap(gradient.n, gradient.k);
    part_.input_gradient.push_back({name, gradient});
  }
  if (module_.spec.lora_rank == 0) {
    weight_gradient(name, shape);
  } else if (in_block_) {
    adapter(name, shape, gradient_of_input);
  }
}

void PartBuilder::weight_gradient(std::string_view name, const GemmShape& shape) {
  GemmShape gradient = shape;
  gradient.m = shape.k;
  gradient.k = shape.m;
  if (module_.spec.fused_accumulation) {
    gradient.output_bytes = kAccumulatedBytes;
    part_.weight_gradient.push_back({name, gradient});
    return;
  }
  // Lists of gradients are turned round at the end: the sum stands before its product.
  part_.weight_gradient.push_back(
      {"gradient sum", MemoryTraffic{3 * kBf16 * shape.batch * shape.k * shape.n}});
  part_.weight_gradient.push_back({name, gradient});
}

void PartBuilder::adapter(std::string_view name, const GemmShape& shape, bool gradient_of_input) {
  const std::int64_t rank = module_.spec.lora_rank;
  GemmShape down = shape;
  down.n = rank;
  down.type = DataType::Bf16;
  GemmShape up = shape;
  up.k = rank;
  up.type = DataType::Bf16;
  const std::int64_t rows = shape.batch * shape.m;
  const std::int64_t sum = 3 * kBf16 * rows * shape.n;  // to what the frozen product gave
  part_.forward.insert(part_.forward.end(),
                       {{name, down}, {name, up}, {"adapter sum", MemoryTraffic{sum}}});
  weight_gradient(name, down);
  weight_gradient(name, up);
  GemmShape up_gradient = up;
  std::swap(up_gradient.n, up_gradient.k);
  if (gradient_of_input) {
    GemmShape down_gradient = down;
    std::swap(down_gradient.n, down_gradient.k);
    part_.input_gradient.push_back({"adapter sum", MemoryTraffic{3 * kBf16 * rows * shape.k}});
    part_.input_gradient.push_back({name, down_gradient});
  }
  part_.input_gradient.push_back({name, up_gradient});
  save("adapter", kBf16 * rows * rank, false, true);
}

void PartBuilder::grouped_linear(std::string_view name, std::int64_t rows, std::int64_t in,
                                 std::int64_t out) {
  const std::int64_t groups = std::min<std::int64_t>(module_.local_experts(), rows);
  if (groups == 0) {
    return;
  }
  const GemmShape shape{.m = (rows + groups - 1) / groups,
                        .n = out,
                        .k = in,
                        .batch = groups,
                        .type = module_.spec.products};
  GemmShape gradient = shape;
  std::swap(gradient.n, gradient.k);
  part_.forward.push_back({name, shape});
  part_.input_gradient.push_back({name, gradient});
  if (module_.spec.lora_rank == 0) {
    weight_gradient(name, shape);
  } else {
    adapter(name, shape, true);
  }
  part_.held_for_weights += kBf16 * rows * (in + out);
  scratch(kBf16 * rows * out);
}

void PartBuilder::router(std::string_view name, std::int64_t tokens, std::int64_t in,
                         std::int64_t out) {
  const GemmShape shape{.m = tokens, .n = out, .k = in};
  GemmShape gradient = shape;
  std::swap(gradient.n, gradient.k);
  part_.forward.push_back({name, shape});
  part_.input_gradient.push_back({name, gradient});
  if (module_.spec.lora_rank == 0) {
    weight_gradient(name, shape);
    part_.held_for_weights += kBf16 * tokens * (in + out);
  }
}

void PartBuilder::exchange(std::string_view name, std::int64_t bytes) {
  const GroupTraffic traffic{
      .kind = CollectiveKind::AllToAll, .bytes = bytes, .group = ParallelGroup::Expert};
  part_.forward.push_back({name, traffic});
  part_.input_gradient.push_back({name, traffic});
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
  if (module_.spec.lora_rank == 0) {
    part_.weight_gradient.push_back({name, MemoryTraffic{traffic}});
  }
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
                             std::int64_t outputs, bool expert) {
  const std::int64_t in = kBf16 * tokens * inputs;
  const std::int64_t out = kBf16 * tokens * outputs;
  // Backward reads the inputs and the output gradient and writes the input gradients.
  // A gate of separate kernels writes the activated half and reads it again.
  const std::int64_t gate = inputs > outputs && !module_.spec.fused_elementwise ? 2 * out : 0;
  elementwise(name, in + out + gate, 2 * in + out + 2 * gate);
  const bool again = expert ? recomputed_.expert_activations : recomputed_.activations;
  if (again) {
    part_.selective.push_back({name, MemoryTraffic{in + out + gate}});
  }
  save("activation input", in, false, false);
  save("activation output", out * bytes_of(module_.spec.products) / kBf16, again, true);
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
