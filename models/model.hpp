// SPDX-License-Identifier: Apache-2.0
// What a large multimodal model consists of.
#pragma once

#include "models/microbatch.hpp"
#include "sim/cluster/kernel_time.hpp"
#include "sim/core/ids.hpp"
#include "sim/core/json.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// The operators of one transformer block.
enum class Block : std::uint8_t {
  Gated,  ///< self attention, rotary positions, FFN of three matrices (Llama, Qwen)
  Plain,  ///< self attention, FFN of two matrices (GPT, ViT)
  Dit,    ///< self attention, cross attention, FFN of two matrices, adaLN-single modulation
};

std::string_view name_of(Block block);

/// Which tokens a token attends to.
enum class AttentionMask : std::uint8_t {
  Full,       ///< all tokens of its instance
  Causal,     ///< earlier tokens of its instance
  Documents,  ///< earlier tokens of its document (packed sequences)
};

std::string_view name_of(AttentionMask mask);

/// Mixture of experts: the FFN of a layer becomes many small ones, of which a router chooses some
/// for each token (arXiv 2101.03961; with shared experts arXiv 2401.06066). FFNs of three matrices.
struct ExpertSpec {
  int count = 0;           ///< routed experts of a layer; 0: none
  int chosen = 0;          ///< of them, per token
  int ffn = 0;             ///< width of one expert
  int shared_ffn = 0;      ///< width of the experts that every token passes, together; 0: none
  int dense_layers = 0;    ///< leading layers that have the FFN of the module instead
  double imbalance = 1.0;  ///< rows of the busiest GPU over their mean; all wait for it
  double copies = 0.0;     ///< of a token that its GPU sends; 0: one per chosen expert
  bool separate_biases = false;  ///< experts have biases, which kernels of their own add
  friend bool operator==(const ExpertSpec&, const ExpertSpec&) = default;
};

/// Multi-head latent attention: queries, keys and values out of compressed ones (DeepSeek-V2, arXiv
/// 2405.04434 §2.1).
struct LatentSpec {
  int kv_rank = 0;     ///< width of compressed keys and values; 0: plain attention
  int query_rank = 0;  ///< width of compressed queries; 0: they are not compressed
  int rope_dim = 0;    ///< part of the head dimension that holds the position; heads share its keys
  friend bool operator==(const LatentSpec&, const LatentSpec&) = default;
};

/// Sliding-window attention: a token attends to the last `tokens` ones, itself included.
struct WindowSpec {
  int tokens = 0;      ///< 0: no window
  int full_every = 0;  ///< every n-th layer attends to all tokens (2: every other); 0: none does
  friend bool operator==(const WindowSpec&, const WindowSpec&) = default;
};

/// What selective recomputation drops and runs again (recompute_modules of Megatron-LM).
struct RecomputedParts {
  bool core_attention = false;      ///< softmax and dropout of written-out attention; of fused
                                    ///< attention what only its backward needs
  bool norms = false;               ///< outputs of norms
  bool activations = false;         ///< outputs of activation functions
  bool expert_activations = false;  ///< the same inside experts
  bool mlp = false;                 ///< the whole FFN of layers without experts, its norm included
  bool latent_up = false;           ///< queries, keys and values of latent attention
  friend bool operator==(const RecomputedParts&, const RecomputedParts&) = default;
};

/// How layers of one module differ.
struct LayerKind {
  bool experts = false;
  bool window = false;
  friend bool operator==(const LayerKind&, const LayerKind&) = default;

  [[nodiscard]] std::size_t index() const { return (experts ? 1U : 0U) + (window ? 2U : 0U); }
};

inline constexpr std::size_t kLayerKinds = 4;

/// Architecture of one modality module.
struct ModuleSpec {
  std::string name;
  Block block = Block::Plain;
  int layers = 0;
  int hidden = 0;
  int ffn = 0;
  int heads = 0;
  int kv_groups = 0;  ///< key/value heads
  int head_dim = 0;
  AttentionKernel attention = AttentionKernel::Fused;
  bool dropout = false;
  bool fused_elementwise = true;  ///< false: norms, rotary positions and gates as PyTorch runs them
                                  ///< without a compiler
  bool fused_rotary = true;       ///< false: rotary positions alone are as without a compiler
  bool fused_accumulation =
      true;  ///< false: weight gradients are added up by a kernel of their own
  /// Selective recomputation runs every second product again, too (the "op" policy of torchtitan).
  bool products_again = false;
  int vocabulary = 0;    ///< rows of the embedding on the first layer; 0: no token embedding
  int patch_values = 0;  ///< input values per patch, embedded on the first layer; 0: none
  bool projector =
      false;          ///< MLP on the last layer that merges patches into tokens of the backbone
  int value_dim = 0;  ///< of a head, where it differs from head_dim; 0: head_dim
  bool query_norm = false;  ///< norms on the heads of queries and keys (Qwen3)
  ExpertSpec experts{};
  LatentSpec latent{};
  WindowSpec window{};
  /// Low-rank adapters on the products of blocks are trained, all else is frozen (LoRA, arXiv
  /// 2106.09685); 0: everything is trained.
  int lora_rank = 0;
  bool fused_loss = false;             ///< loss in bf16 whose gradient overwrites the logits
  DataType products = DataType::Bf16;  ///< inputs of the products of blocks
  std::optional<RecomputedParts> recomputed{};  ///< nothing: as docs/model.md (16) says
  friend bool operator==(const ModuleSpec&, const ModuleSpec&) = default;

  [[nodiscard]] int value_width() const { return value_dim > 0 ? value_dim : head_dim; }

  [[nodiscard]] LayerKind kind_of(int layer) const {
    return {.experts = experts.count > 0 && layer >= experts.dense_layers,
            .window = window.tokens > 0 &&
                      (window.full_every == 0 || (layer + 1) % window.full_every != 0)};
  }
};

/// A module inside a model.
struct LmmModule {
  ModuleSpec spec;
  Feed feed = Feed::Sequence;
  std::vector<ModuleId> inputs;  ///< modules whose output it consumes
  AttentionMask mask = AttentionMask::Full;
  bool trained = true;
  bool head = false;  ///< final norm, language-model head and loss on the last layer
  bool tied = false;  ///< the head has the weights of the embedding
  friend bool operator==(const LmmModule&, const LmmModule&) = default;
};

/// How raw media become tokens; models/token_rules.hpp gives the rules.
struct TokenRuleSpec {
  std::string rule = "fixed";      ///< "fixed" or "qwen2-vl"
  int image_pixels = 728;          ///< fixed: side that every image is scaled to
  int patch = 14;                  ///< pixels per patch side
  int merge = 4;                   ///< patches per merged token side
  std::int64_t min_pixels = 3136;  ///< qwen2-vl: images are scaled into this range
  std::int64_t max_pixels = 12'845'056;
  double clip_tokens_per_s = 896.0;  ///< latent tokens of a generated clip per second
  friend bool operator==(const TokenRuleSpec&, const TokenRuleSpec&) = default;
};

/// What fits in one microbatch.
struct PackingSpec {
  int tokens = 8192;  ///< of the packed sequence
  int max_images = 48;
  int max_clips = 8;
  double max_clip_seconds = 16.0;  ///< all clips of a microbatch together
  friend bool operator==(const PackingSpec&, const PackingSpec&) = default;
};

/// How context-parallel GPUs exchange keys and values.
enum class ContextExchange : std::uint8_t {
  Ring,       ///< piece by piece beside the attention to the piece before (arXiv 2310.01889)
  AllGather,  ///< before attention (Llama 3, arXiv 2407.21783 §3.3.2)
};

std::string_view name_of(ContextExchange exchange);

/// How a model is spread over GPUs.
struct ParallelPlan {
  int tp = 1;  ///< tensor parallel
  int pp = 1;  ///< pipeline ranks
  int dp = 1;  ///< replicas
  int cp = 1;  ///< context parallel: GPUs that share the tokens of a sequence
  /// Expert parallel: GPUs of the tp·cp·dp of a pipeline position that share out the experts. Each
  /// expert is whole on its GPU.
  int ep = 1;
  ContextExchange context = ContextExchange::Ring;
  bool sequence_parallel = true;  ///< between matrix products the tp GPUs share the tokens
  bool async_tp = false;          ///< products and the collectives beside them run piece by piece
  /// What the replicas share (ZeRO, arXiv 1910.02054 §5): 0 nothing, 1 optimizer state (Megatron's
  /// distributed optimizer), 2 also gradients, and weights outside of passes (gathered once, kept
  /// from F to the backward), 3 the same with weights gathered for every pass. From 2 on only for
  /// schedules that gather weights layer by layer.
  int zero = 1;
  /// On the first pipeline rank gradients are reduced in buckets beside the last backward.
  bool overlap_gradients = true;
  bool clip_gradients = true;  ///< every step takes the norm of all gradients
  /// All replicas have the data of the first, which stands for them.
  bool equal_replicas = false;

  [[nodiscard]] int simulated_replicas() const { return equal_replicas ? 1 : dp; }

  /// GPUs of a rank.
  [[nodiscard]] int rank_gpus() const { return tp * cp; }

  /// GPUs that hold a copy of the same weights outside experts, and of the same experts.
  [[nodiscard]] int weight_copies() const { return cp * dp; }

  [[nodiscard]] int expert_copies() const { return tp * cp * dp / ep; }

  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
};

/// A model: modules in topological order, and how it is usually fed and spread.
struct LmmModel {
  std::string name;
  std::string title;
  std::vector<LmmModule> modules;
  TokenRuleSpec tokens;
  PackingSpec packing;
  ParallelPlan parallel;
  friend bool operator==(const LmmModel&, const LmmModel&) = default;

  /// feeds[i] is what module i takes: the second argument of make_batch.
  [[nodiscard]] std::vector<Feed> feeds() const;
};

/// Throws Input at `where` unless the modules fit together: unique names, dimensions above zero,
/// inputs that stand before their consumers, a prompt for every DiT, a consumer for every
/// projector.
void check_model(const LmmModel& model, const std::string& where);

/// A shipped model by name (configs/models/NAME.json), or any file by its path. Throws Input.
LmmModel load_model(const std::string& name_or_path);

/// Names of the shipped models, in alphabetical order.
std::vector<std::string> model_names();

/// A shipped module by name (configs/models/modules/NAME.json), or any file by its path.
ModuleSpec load_module(const std::string& name_or_path);

/// Names of the shipped modules, in alphabetical order.
std::vector<std::string> module_names();

}  // namespace dipsim
