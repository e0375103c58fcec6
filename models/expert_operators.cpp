// SPDX-License-Identifier: Apache-2.0
#include "models/expert_operators.hpp"

#include "models/element_bytes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dipsim {

namespace {

/// The experts that every token passes: a dense FFN beside the others.
void shared_experts(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const std::int64_t tokens = b.shape().tokens;
  const std::int64_t ffn = m.spec.experts.shared_ffn / m.tp;
  if (ffn == 0) {
    return;
  }
  b.gather("shared gather", tokens, m.spec.hidden);
  b.linear_by_columns("shared up", tokens, m.spec.hidden, 2 * ffn);
  b.activation("shared activation", tokens, 2 * ffn, ffn);
  b.linear_by_rows("shared down", tokens, ffn, m.spec.hidden);
  b.scatter("shared scatter", tokens, m.spec.hidden);
}

// Bytes per token and expert that a router moves: logits out of a product (2), their cast to fp32
// (2 + 4), softmax or sigmoid (4 + 4) and the choice of the largest (4); backward half of it.
constexpr std::int64_t kRouterBytes = 20;

// Bytes per output of an expert where PyTorch adds its bias (github:NVIDIA-NeMo/Automodel@8d9bfb90e
// nemo_automodel/components/moe/layers.py, GroupedExpertsDeepEP._apply_bias). Behind "up" bias and
// outputs are added (2 + 2) and joined (2 + 2); backward splits (2 + 2) and sums up for the bias
// (2), by way of a copy (2). Behind "down" the bias times the fp32 weight of the router (4) is
// added in fp32 (2 + 4 + 4), joined (4 + 4) and cast (2, its read being counted); backward casts
// there and back (12), multiplies for the gradients of bias and weight (8 + 8), sums them up (4 +
// 4), and splits (4).
constexpr std::int64_t kUpBiasBytes = 8;
constexpr std::int64_t kDownBiasBytes = 24;
constexpr std::int64_t kDownBiasBackwardBytes = 40;

}  // namespace

void add_experts(PartBuilder& b) {
  const PlacedModule& m = b.module();
  const ExpertSpec& spec = m.spec.experts;
  const std::int64_t hidden = m.spec.hidden;
  const std::int64_t tokens = b.sharded(b.shape().tokens);
  const auto rows = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(tokens) * spec.chosen * spec.imbalance));
  const double copies = spec.copies > 0.0 ? spec.copies : spec.chosen;
  const auto sent = static_cast<std::int64_t>(std::ceil(static_cast<double>(tokens) * copies));
  const std::int64_t token_bytes = kBf16 * hidden;

  b.norm("ffn norm", b.shape().tokens, hidden);
  b.router("router", tokens, hidden, spec.count);
  const std::int64_t routing = kRouterBytes * tokens * spec.count;
  b.elementwise("routing", routing, routing / 2);
  b.save("router logits", kFp32 * tokens * spec.count, false, false);

  b.exchange("dispatch", token_bytes * sent);
  b.elementwise("permute", token_bytes * (sent + rows), token_bytes * (sent + rows));
  b.save("dispatched rows", bytes_of(m.spec.products) * hidden * rows, false, true);
  b.grouped_linear("expert up", rows, hidden, 2 * spec.ffn);
  if (spec.separate_biases) {
    b.elementwise("expert bias", kUpBiasBytes * rows * 2 * spec.ffn,
                  kUpBiasBytes * rows * 2 * spec.ffn);
  }
  b.activation("expert activation", rows, 2 * spec.ffn, spec.ffn, true);
  b.grouped_linear("expert down", rows, spec.ffn, hidden);
  if (spec.separate_biases) {
    b.elementwise("expert bias", kDownBiasBytes * rows * hidden,
                  kDownBiasBackwardBytes * rows * hidden);
  }
  b.elementwise("unpermute", token_bytes * (rows + sent), token_bytes * (rows + sent));
  b.exchange("combine", token_bytes * sent);
  b.scratch(2 * token_bytes * std::max(rows, sent));
  shared_experts(b);
  const std::int64_t sum = token_bytes * (sent + tokens);  // over the copies of each token
  b.elementwise("combine sum", sum, sum);
  b.residual("ffn residual");
}

}  // namespace dipsim
