// SPDX-License-Identifier: Apache-2.0
// Allocator readings of Megatron-Bridge on H100.
#include "validate/gpt.hpp"
#include "validate/moe_models.hpp"
#include "validate/sets.hpp"
#include "validate/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

// Bytes per parameter from the recipes in src/megatron/bridge (perf_recipes/llama/h100/llama3.py,
// recipes/moonlight/h100/moonlight_16b.py, recipes/qwen/h100/qwen3_moe.py); gradients are added up
// and reduced in bf16 in all of them (grad_reduce_in_fp32 = False).

/// fp8_param_gather: weights of blocks are kept in fp8 alone, without a transposed copy
/// (disable_parameter_transpose_cache). The optimizer steps on fp32 copies of its gradients.
constexpr TrainingState kFp8State{.weights = 2.0,
                                  .gradients = 2.0,
                                  .optimizer = 12.0,
                                  .reduced = 2.0,
                                  .block_weights = 1.0,
                                  .step_scratch = 4.0};

/// use_precision_aware_optimizer: of fp32 weights only the 16 bits that bf16 lacks are kept
/// (Megatron-LM, OptimizerConfig::store_param_remainders), and it steps on gradients as they are.
/// Moments in bf16, of which a step has fp32 copies (TransformerEngine, pull request 1640).
constexpr TrainingState kMoonlightState{.weights = 2.0,
                                        .gradients = 2.0,
                                        .optimizer = 2.0 + 2.0 + 2.0,
                                        .reduced = 2.0,
                                        .group_scratch = 4.0 + 4.0};

/// The same with moments in fp32.
constexpr TrainingState kQwenState{
    .weights = 2.0, .gradients = 2.0, .optimizer = 2.0 + 4.0 + 4.0, .reduced = 2.0};

struct Recipe {
  std::string_view model;
  TrainingState state;
  DataType products;
  bool separate_norms;  ///< norms are no part of the products behind them
  std::string_view note;
};

constexpr std::array kRecipes = {
    Recipe{"Llama3-70B", kFp8State, DataType::Fp8, false, "weights of blocks in fp8 only"},
    Recipe{"Moonlight-16B-A3B", kMoonlightState, DataType::Bf16, true,
           "moments in bf16; experts evenly used"},
    Recipe{"Qwen3-30B-A3B", kQwenState, DataType::Bf16, true, "nothing recomputed"},
};

const Recipe* recipe_of(const CsvRow& row) {
  const auto* const found = std::ranges::find(kRecipes, row.text("model"), &Recipe::model);
  return found == kRecipes.end() ? nullptr : found;
}

/// Why a row can't be compared; nothing where it can.
std::optional<std::string> unusable_because(const CsvRow& row) {
  if (row.text("model").starts_with("Nemotron")) {
    return "state-space layers (Mamba) are not modelled";
  }
  if (row.text("peak_memory").empty()) {
    return "no reading";
  }
  if (row.text("microbatch_seq").empty() || row.text("global_batch_seq").empty()) {
    return "the batch is not given";
  }
  if (recipe_of(row) == nullptr) {
    return "no recipe is known for the model";
  }
  return std::nullopt;
}

/// recompute_modules of Megatron-LM. TransformerEngine puts the norms of a dense layer into the
/// products behind them, where "layernorm" finds none (megatron/core/transformer/
/// transformer_layer.py).
std::optional<RecomputedParts> recomputed_parts(const CsvRow& row, bool separate_norms) {
  std::string_view modules = row.text("recompute_modules");
  if (modules.empty() || modules == "none") {
    return std::nullopt;
  }
  RecomputedParts parts;
  while (!modules.empty()) {
    const std::size_t comma = modules.find(',');
    const std::string_view module = modules.substr(0, comma);
    modules = comma == std::string_view::npos ? "" : modules.substr(comma + 1);
    if (module == "core_attn") {
      parts.core_attention = true;
    } else if (module == "layernorm") {
      parts.norms = separate_norms;
    } else if (module == "moe_act") {
      parts.expert_activations = true;
    } else if (module == "mlp") {
      parts.mlp = true;
    } else if (module == "mla_up_proj") {
      parts.latent_up = true;
    } else {
      row.fail("recompute_modules", fmt::format("\"{}\" is unknown", module));
    }
  }
  return parts;
}

TrainingRun run_of(const CsvRow& row, const Recipe& recipe, const Cluster& cluster) {
  TrainingRun run;
  run.spec = public_model_spec(row.text("model"), row);
  run.spec.fused_loss = true;
  run.spec.products = recipe.products;
  run.spec.recomputed = recomputed_parts(row, recipe.separate_norms);
  run.recompute = run.spec.recomputed ? RecomputeMode::Selective : RecomputeMode::Keep;
  run.cluster = with_gpus(cluster, count_of(row, "gpus"));
  run.plan.tp = count_of(row, "tp");
  run.plan.pp = count_of(row, "pp");
  run.plan.cp = count_of(row, "cp");
  run.plan.dp = count_of(row, "dp");
  run.plan.ep = count_of(row, "ep");
  run.plan.zero = 1;
  run.plan.equal_replicas = true;
  run.state = recipe.state;
  run.chunks_per_rank = count_of(row, "vp");
  run.schedule = run.chunks_per_rank > 1 ? "interleaved" : "1f1b";
  run.sequence = row.text("seq_len").empty() ? 4096 : count_of(row, "seq_len");
  run.sequences_per_microbatch = count_of(row, "microbatch_seq");
  run.microbatches =
      std::max(1, count_of(row, "global_batch_seq") / run.plan.dp / run.sequences_per_microbatch);
  return run;
}

}  // namespace

std::vector<ValidationSet> bridge_memory_h100(const CsvTable& table) {
  ValidationSet set;
  set.name = "bridge_memory_h100";
  set.title = "Llama 3 70B (fp8), Moonlight 16B and Qwen3 30B on 8 to 32 H100, by recomputed parts";
  set.quantity = "peak memory";
  set.unit = "GB";
  set.table = table.file();
  set.source = "github:NVIDIA-NeMo/Megatron-Bridge@067f987df skills/ and docs/";
  set.bar_percent = 8.0;
  set.notes = {
      "Notes of rows are assumptions: the table does not say them; they are those of the recipes "
      "in src/megatron/bridge. The highest rank counts. Losses are fused and in bf16.",
      "While the optimizer of Moonlight steps, fp32 copies of its moments in bf16 exist: that is "
      "the "
      "peak, which is why recomputation brings so little. The steps of Llama 3 make fp32 copies of "
      "gradients.",
      "Qwen3 with overlapped expert parallelism (62.2 GiB) runs parts of two microbatches at once; "
      "what that holds beyond one of them is not modelled."};
  const Cluster cluster = load_cluster("h100-64");
  for (const CsvRow& row : table.rows()) {
    if (const auto reason = unusable_because(row)) {
      set.unusable.push_back({row.line(), *reason});
      continue;
    }
    const Recipe& recipe = *recipe_of(row);
    const TrainingRun run = run_of(row, recipe, cluster);
    const std::vector<double> peaks = predict(run).peak_gib;
    const double unit = row.text("peak_memory_unit") == "GiB" ? kBytesPerGib : kBytesPerGb;
    const std::string_view modules = row.text("recompute_modules");
    set.rows.push_back(
        {.label = fmt::format("{}, tp {} pp {} x {}, ep {}, recomputed: {}", row.text("model"),
                              run.plan.tp, run.plan.pp, run.chunks_per_rank, run.plan.ep,
                              modules.empty() ? "none" : modules),
         .line = row.line(),
         .predicted = *std::ranges::max_element(peaks) * kBytesPerGib / kBytesPerGb,
         .measured = row.number("peak_memory", 1e-6) * unit / kBytesPerGb,
         .work = 0.0,
         .note = std::string(recipe.note) +
                 (row.text("seq_len").empty() ? "; sequences of 4096" : "")});
  }
  return {std::move(set)};
}

}  // namespace dipsim
