// SPDX-License-Identifier: Apache-2.0
#include "validate/moe_models.hpp"

#include "validate/llama.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace dipsim {

namespace {

/// Keys as in config.json of Hugging Face; head_dim is qk_nope_head_dim + qk_rope_head_dim where
/// attention is latent.
struct Architecture {
  std::string_view name;  ///< that a name in a table begins with
  int layers, hidden, ffn, heads, kv_groups, head_dim, vocabulary;
  ExpertSpec experts;
  LatentSpec latent;
  WindowSpec window;
  bool query_norm;
};

constexpr ExpertSpec experts(int count, int chosen, int ffn, int shared, int dense_layers) {
  ExpertSpec spec;
  spec.count = count;
  spec.chosen = chosen;
  spec.ffn = ffn;
  spec.shared_ffn = shared;
  spec.dense_layers = dense_layers;
  return spec;
}

constexpr LatentSpec kDeepSeekLatent{.kv_rank = 512, .query_rank = 1536, .rope_dim = 64};
constexpr LatentSpec kMoonlightLatent{.kv_rank = 512, .query_rank = 0, .rope_dim = 64};
constexpr WindowSpec kGptOssWindow{.tokens = 128, .full_every = 2};

constexpr std::array kArchitectures = {
    Architecture{"DeepSeek V3",
                 61,
                 7168,
                 18432,
                 128,
                 128,
                 192,
                 129280,
                 experts(256, 8, 2048, 2048, 3),
                 kDeepSeekLatent,
                 {},
                 false},
    Architecture{"Kimi K2",
                 61,
                 7168,
                 18432,
                 64,
                 64,
                 192,
                 163840,
                 experts(384, 8, 2048, 2048, 1),
                 kDeepSeekLatent,
                 {},
                 false},
    Architecture{"Moonlight-16B-A3B",
                 27,
                 2048,
                 11264,
                 16,
                 16,
                 192,
                 163840,
                 experts(64, 6, 1408, 2816, 1),
                 kMoonlightLatent,
                 {},
                 false},
    Architecture{"Qwen3 MoE 30B",
                 48,
                 2048,
                 6144,
                 32,
                 4,
                 128,
                 151936,
                 experts(128, 8, 768, 0, 0),
                 {},
                 {},
                 true},
    Architecture{"Qwen3-30B-A3B",
                 48,
                 2048,
                 6144,
                 32,
                 4,
                 128,
                 151936,
                 experts(128, 8, 768, 0, 0),
                 {},
                 {},
                 true},
    Architecture{"GPT-OSS 20B",
                 24,
                 2880,
                 2880,
                 64,
                 8,
                 64,
                 201088,
                 experts(32, 4, 2880, 0, 0),
                 {},
                 kGptOssWindow,
                 false},
    Architecture{"GPT-OSS 120B",
                 36,
                 2880,
                 2880,
                 64,
                 8,
                 64,
                 201088,
                 experts(128, 4, 2880, 0, 0),
                 {},
                 kGptOssWindow,
                 false},
};

}  // namespace

ModuleSpec public_model_spec(std::string_view name, const CsvRow& row) {
  const auto* const found = std::ranges::find_if(
      kArchitectures, [&](const Architecture& a) { return name.starts_with(a.name); });
  if (found == kArchitectures.end()) {
    return llama_spec(name, row);
  }
  ModuleSpec spec;
  spec.name = found->name;
  spec.block = Block::Gated;
  spec.layers = found->layers;
  spec.hidden = found->hidden;
  spec.ffn = found->ffn;
  spec.heads = found->heads;
  spec.kv_groups = found->kv_groups;
  spec.head_dim = found->head_dim;
  spec.vocabulary = found->vocabulary;
  spec.value_dim = found->latent.kv_rank > 0 ? found->head_dim - found->latent.rope_dim : 0;
  spec.query_norm = found->query_norm;
  spec.experts = found->experts;
  spec.latent = found->latent;
  spec.window = found->window;
  return spec;
}

}  // namespace dipsim
