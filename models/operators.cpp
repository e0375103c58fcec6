// SPDX-License-Identifier: Apache-2.0
#include "models/operators.hpp"

#include "models/part_builder.hpp"

namespace dipsim {

namespace {

// Bytes moved per logit by cross entropy in fp32 (Megatron-LM, vocab_parallel_cross_entropy):
// forward casts (2 + 4), takes the maximum (4) and the exponential with its sum (4 + 4); backward
// scales in place (4 + 4) and casts (2).
constexpr std::int64_t kLossForwardBytes = 18;
constexpr std::int64_t kLossBackwardBytes = 10;
constexpr std::int64_t kKeptBytesPerLogit = 4;
constexpr std::int64_t kScratchBytesPerLogit = 2;

void self_attention(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t query = m.local_query_width();
  const std::int64_t kv = m.local_kv_width();
  b.norm("attention norm", tokens, m.spec.hidden);
  b.gather("attention gather", tokens, m.spec.hidden);
  b.linear_by_columns("qkv", tokens, m.spec.hidden, query + 2 * kv);
  if (m.spec.block == Block::Gated) {  // reads and writes queries and keys
    // Without a compiler by way of fp32 complex numbers: cast (2 + 4), product (4 + 4), cast (4 +
    // 2).
    const std::int64_t bytes = m.spec.fused_elementwise ? 4 : 20;
    b.elementwise("rotary", bytes * tokens * (query + kv), bytes * tokens * (query + kv));
  }
  b.attention("attention", tokens, tokens, counted_pairs(b.shape(), m.mask),
              m.mask != AttentionMask::Full);
  b.linear_by_rows("attention output", tokens, query, m.spec.hidden);
  b.product_again("key", tokens, m.spec.hidden, kv);
  b.product_again("attention output", tokens, query, m.spec.hidden);
  b.scatter("attention scatter", tokens, m.spec.hidden);
  b.residual("attention residual");
}

void cross_attention(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t context = b.shape().context_tokens;
  b.norm("cross norm", tokens, m.spec.hidden);
  b.gather("cross gather", tokens, m.spec.hidden);
  b.linear_by_columns("cross query", tokens, m.spec.hidden, m.local_query_width());
  b.linear_by_columns("cross key and value", context, m.spec.hidden, 2 * m.local_kv_width());
  b.attention("cross attention", tokens, context, static_cast<double>(b.shape().cross_products),
              false);
  b.linear_by_rows("cross output", tokens, m.local_query_width(), m.spec.hidden);
  b.scatter("cross scatter", tokens, m.spec.hidden);
  b.residual("cross residual");
}

void feed_forward(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t ffn = m.local_ffn();
  const std::int64_t into = m.spec.block == Block::Gated ? 2 * ffn : ffn;
  b.norm("ffn norm", tokens, m.spec.hidden);
  b.gather("ffn gather", tokens, m.spec.hidden);
  b.linear_by_columns("ffn up", tokens, m.spec.hidden, into);
  b.product_again("ffn up", tokens, m.spec.hidden, ffn);
  b.activation("ffn activation", tokens, into, ffn);
  b.linear_by_rows("ffn down", tokens, ffn, m.spec.hidden);
  b.scatter("ffn scatter", tokens, m.spec.hidden);
  b.residual("ffn residual");
}

/// adaLN-single (PixArt-α, arXiv 2310.00426 §2.3): scale and shift after two norms, gates on two
/// branches; the gates keep the output of their branch.
void modulation(PartBuilder& b) {
  const std::int64_t tensor = b.sharded(2 * b.shape().tokens * b.module().spec.hidden);
  for (const std::string_view name : {"attention modulation", "ffn modulation"}) {
    b.elementwise(name, 2 * tensor, 3 * tensor);
    b.save("gated branch", tensor, false, false);
  }
}

void block(PartBuilder& b) {
  self_attention(b);
  if (b.module().spec.block == Block::Dit) {
    cross_attention(b);
    modulation(b);
  }
  feed_forward(b);
}

void first(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t hidden = m.spec.hidden;
  if (m.spec.vocabulary > 0) {
    b.embedding("embedding", tokens, hidden);
    b.scatter("embedding scatter", tokens, hidden);
  }
  if (m.spec.patch_values > 0) {
    b.linear_on_shard("patch embedding", tokens, m.spec.patch_values, hidden, false);
    b.save("patches", b.sharded(2 * tokens * m.spec.patch_values), false, true);
  }
  if (m.spec.block == Block::Dit) {
    const std::int64_t context = b.shape().context_tokens;
    b.linear_by_columns("context projection", context, m.context_width, hidden / m.tp);
    b.gather_columns("context gather", context, hidden);
    b.scratch(4 * context * hidden);
    b.save("context", 2 * context * m.context_width, false, true);
    b.linear_by_columns("modulation", b.shape().instances, hidden, 6 * hidden / m.tp);
  }
}

void head(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t logits = tokens * m.local_vocabulary();
  b.gather("head gather", tokens, m.spec.hidden);
  b.linear_by_columns("head", tokens, m.spec.hidden, m.local_vocabulary());
  b.elementwise("loss", kLossForwardBytes * logits, kLossBackwardBytes * logits);
  b.save("softmax of the loss", kKeptBytesPerLogit * logits, false, false);
  b.scratch(kScratchBytesPerLogit * logits + 4 * tokens * m.spec.hidden);
}

/// Norm and a two-layer MLP on merged patches (pixel shuffle and MLP of InternVL, arXiv
/// 2404.16821).
void projector(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().output_tokens;
  const std::int64_t merged = std::int64_t{m.merge} * m.spec.hidden;
  const std::int64_t out = m.output_width / m.tp;
  b.norm("projector norm", tokens, merged);
  b.gather("projector gather", tokens, merged);
  b.linear_by_columns("projector up", tokens, merged, out);
  b.activation("projector activation", tokens, out, out);
  b.linear_by_rows("projector down", tokens, out, m.output_width);
  b.scatter("projector scatter", tokens, m.output_width);
}

void last(PartBuilder& b) {
  const PlacedModule& m = b.module();
  if (m.spec.vocabulary > 0 || m.spec.block == Block::Dit) {
    b.norm("final norm", b.shape().tokens, m.spec.hidden);
  }
  if (m.head) {
    head(b);
  }
  if (m.spec.projector) {
    projector(b);
  }
  if (m.spec.block == Block::Dit) {
    b.linear_on_shard("output layer", b.shape().tokens, m.spec.hidden, m.spec.patch_values, true);
  }
}

}  // namespace

double flops_of(const Operator& op) {
  if (const auto* const gemm = std::get_if<GemmShape>(&op.shape)) {
    return gemm->flops();
  }
  if (const auto* const attention = std::get_if<AttentionShape>(&op.shape)) {
    return attention->flops();
  }
  return 0.0;
}

PartOperators operators_of(const PlacedModule& module, Part part, const WorkShape& shape) {
  PartBuilder builder(module, shape);
  if (shape.tokens > 0) {
    switch (part) {
      case Part::First:
        first(builder);
        break;
      case Part::Block:
        block(builder);
        break;
      case Part::Last:
        last(builder);
        break;
    }
  }
  return builder.finish();
}

}  // namespace dipsim
