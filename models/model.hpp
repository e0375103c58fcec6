// SPDX-License-Identifier: Apache-2.0
// What a large multimodal model consists of.
#pragma once

#include "models/microbatch.hpp"
#include "sim/cluster/kernel_time.hpp"
#include "sim/core/ids.hpp"
#include "sim/core/json.hpp"

#include <cstdint>
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
  bool fused_accumulation =
      true;  ///< false: weight gradients are added up by a kernel of their own
  /// Selective recomputation runs every second product again, too (the "op" policy of torchtitan).
  bool products_again = false;
  int vocabulary = 0;    ///< rows of the embedding on the first layer; 0: no token embedding
  int patch_values = 0;  ///< input values per patch, embedded on the first layer; 0: none
  bool projector =
      false;  ///< MLP on the last layer that merges patches into tokens of the backbone
  friend bool operator==(const ModuleSpec&, const ModuleSpec&) = default;
};

/// A module inside a model.
struct LmmModule {
  ModuleSpec spec;
  Feed feed = Feed::Sequence;
  std::vector<ModuleId> inputs;  ///< modules whose output it consumes
  AttentionMask mask = AttentionMask::Full;
  bool trained = true;
  bool head = false;  ///< final norm, language-model head and loss on the last layer
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

/// How a model is spread over GPUs.
struct ParallelPlan {
  int tp = 1;                     ///< tensor parallel
  int pp = 1;                     ///< pipeline ranks
  int dp = 1;                     ///< replicas
  bool sequence_parallel = true;  ///< between matrix products the tp GPUs share the tokens
  bool async_tp = false;          ///< products and the collectives beside them run piece by piece
  /// What the replicas share (ZeRO, arXiv 1910.02054 §5): 0 nothing, 1 optimizer state (Megatron's
  /// distributed optimizer), 2 also gradients, and weights outside of passes (gathered once, kept
  /// from F to the backward), 3 the same with weights gathered for every pass. From 2 on only for
  /// schedules that gather weights layer by layer.
  int zero = 1;
  /// All replicas have the data of the first, which stands for them.
  bool equal_replicas = false;

  [[nodiscard]] int simulated_replicas() const { return equal_replicas ? 1 : dp; }

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
