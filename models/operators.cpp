// SPDX-License-Identifier: Apache-2.0
#include "models/operators.hpp"

#include "models/expert_operators.hpp"
#include "models/part_builder.hpp"

#include <array>

namespace dipsim {

namespace {

// Bytes moved per logit by cross entropy in fp32 (Megatron-LM, vocab_parallel_cross_entropy):
// forward casts (2 + 4), takes the maximum (4) and the exponential with its sum (4 + 4); backward
// scales in place (4 + 4) and casts (2).
constexpr std::int64_t kLossForwardBytes = 18;
constexpr std::int64_t kLossBackwardBytes = 10;
constexpr std::int64_t kKeptBytesPerLogit = 4;
constexpr std::int64_t kScratchBytesPerLogit = 2;
// A fused kernel in bf16 reads logits twice and writes their gradient over them (TransformerEngine,
// pytorch/cross_entropy.py); backward scales that.
constexpr std::int64_t kFusedLossForwardBytes = 6;
constexpr std::int64_t kFusedLossBackwardBytes = 4;
constexpr std::int64_t kFusedBytesPerLogit = 2;

/// Reads and writes queries and keys. Without a compiler by way of fp32 complex numbers: cast (2 +
/// 4), product (4 + 4), cast (4 + 2).
void rotary(PartBuilder& b, std::int64_t width) {
  const ModuleSpec& spec = b.module().spec;
  const std::int64_t bytes = spec.fused_elementwise && spec.fused_rotary ? 4 : 20;
  const std::int64_t traffic = bytes * b.shape().tokens * width;
  b.elementwise("rotary", traffic, traffic);
}

/// Queries, keys and values of all heads out of a norm.
void heads(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t query = m.local_query_width();
  const std::int64_t kv = m.local_kv_width();
  b.gather("attention gather", tokens, m.spec.hidden);
  b.linear_by_columns("qkv", tokens, m.spec.hidden, query + kv + m.local_value_width());
  if (m.spec.query_norm) {  // keeps its input; the output is what attention keeps
    const std::int64_t bytes = 2 * tokens * (query + kv);
    b.elementwise("query and key norm", 2 * bytes, 3 * bytes);
    b.save("query and key norm input", bytes, false, false);
  }
  if (m.spec.block == Block::Gated) {
    rotary(b, query + kv);
  }
  b.save_heads(tokens, tokens);
}

/// The same of latent attention (DeepSeek-V2, arXiv 2405.04434 §2.1). The products that compress
/// are copied on the sharded tokens (Megatron-LM).
void latent_heads(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const LatentSpec& latent = m.spec.latent;
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t hidden = m.spec.hidden;
  const std::int64_t query = m.local_query_width();
  const std::int64_t up =
      m.local_kv_width() - std::int64_t{m.local_heads()} * latent.rope_dim + m.local_value_width();
  if (latent.query_rank > 0) {
    b.linear_on_shard("query down", tokens, hidden, latent.query_rank, true);
    b.norm("query norm", tokens, latent.query_rank);
  }
  b.linear_on_shard("key and value down", tokens, hidden, latent.kv_rank + latent.rope_dim, true);
  b.norm("key and value norm", tokens, latent.kv_rank);
  const PartBuilder::Mark before = b.mark();
  const std::int64_t from = latent.query_rank > 0 ? latent.query_rank : hidden;
  b.gather("query gather", tokens, from);
  b.linear_by_columns("query up", tokens, from, query);
  b.gather("key and value gather", tokens, latent.kv_rank + latent.rope_dim);
  b.linear_by_columns("key and value up", tokens, latent.kv_rank, up);
  // Positions are on a part of each query and on the keys that heads share; then the parts are laid
  // out beside each other.
  rotary(b, std::int64_t{m.local_heads() + 1} * latent.rope_dim);
  const std::int64_t joined = 4 * tokens * (query + m.local_kv_width());
  b.elementwise("query and key layout", joined, joined);
  b.save_heads(tokens, tokens);
  if (b.recomputed().latent_up) {
    b.recompute_since(before, {});
  }
}

void self_attention(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t width = m.local_attention_width();
  b.norm("attention norm", tokens, m.spec.hidden);
  if (m.spec.latent.kv_rank > 0) {
    latent_heads(b);
  } else {
    heads(b);
  }
  b.attention("attention", tokens, tokens, b.pairs(), m.mask != AttentionMask::Full);
  b.linear_by_rows("attention output", tokens, width, m.spec.hidden);
  b.product_again("key", tokens, m.spec.hidden, m.local_kv_width());
  b.product_again("attention output", tokens, width, m.spec.hidden);
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
  b.save_heads(tokens, context);
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
  const PartBuilder::Mark before = b.mark();
  b.norm("ffn norm", tokens, m.spec.hidden);
  b.gather("ffn gather", tokens, m.spec.hidden);
  b.linear_by_columns("ffn up", tokens, m.spec.hidden, into);
  b.product_again("ffn up", tokens, m.spec.hidden, ffn);
  b.activation("ffn activation", tokens, into, ffn);
  b.linear_by_rows("ffn down", tokens, ffn, m.spec.hidden);
  b.scatter("ffn scatter", tokens, m.spec.hidden);
  if (b.recomputed().mlp) {
    constexpr std::array<std::string_view, 1> kInput = {"norm input"};
    b.recompute_since(before, kInput);
  }
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
  if (b.kind().experts) {
    add_experts(b);
  } else {
    feed_forward(b);
  }
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
  const bool fused = m.spec.fused_loss;
  b.elementwise("loss", (fused ? kFusedLossForwardBytes : kLossForwardBytes) * logits,
                (fused ? kFusedLossBackwardBytes : kLossBackwardBytes) * logits);
  b.save("softmax of the loss", (fused ? kFusedBytesPerLogit : kKeptBytesPerLogit) * logits, false,
         false);
  b.scratch((fused ? 0 : kScratchBytesPerLogit * logits) + 4 * tokens * m.spec.hidden);
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

PartOperators operators_of(const PlacedModule& module, Part part, const WorkShape& shape,
                           LayerKind kind) {
  PartBuilder builder(module, part, shape, kind);
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
