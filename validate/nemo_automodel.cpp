// SPDX-License-Identifier: Apache-2.0
// Pre-training and LoRA of public language models with NeMo AutoModel (PyTorch FSDP2) on H100.
#include "validate/gpt.hpp"
#include "validate/moe_models.hpp"
#include "validate/sets.hpp"
#include "validate/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

/// Everything in bf16 but for gradients, which are reduced in fp32 (MixedPrecisionPolicy of
/// components/distributed/config.py). torch.optim.Adam runs one kernel per step of its formula: it
/// reads and writes 18 tensors of bf16.
constexpr TrainingState kAutoModel{.weights = 2.0,
                                   .gradients = 2.0,
                                   .optimizer = 4.0,
                                   .gathered = 2.0,
                                   .reduced = 4.0,
                                   .step_traffic = 36.0};

/// What the table leaves out, from examples/ of the repository as it was when the row was added.
struct Recipe {
  std::string_view model;    ///< that a name in the table begins with
  std::string_view section;  ///< of the table, its first word
  bool recompute;            ///< activation_checkpointing
  int zero;                  ///< 2: reshard_after_forward is false; with a pipeline 1
  int ep;                    ///< where the table gives none
  /// Copies of a token that leave its GPU: DeepEP sends one to each GPU (between nodes: node) that
  /// has any of its experts, and the balanced gate gives a token consecutive experts
  /// (FakeBalancedGate of components/moe/layers.py).
  double copies;
  std::string_view note;
};

constexpr std::array kRecipes = {
    Recipe{"DeepSeek V3", "Pre-Training", true, 1, 1, 1.0,
           "every layer recomputed; all experts of a token on one node"},
    Recipe{"Kimi K2", "Pre-Training", true, 1, 1, 4.0 / 3.0,
           "every layer recomputed; experts of a token on 1 or 2 GPUs"},
    Recipe{"Qwen3 MoE 30B", "Pre-Training", true, 2, 1, 1.0,
           "every layer recomputed; all experts of a token on one GPU"},
    Recipe{"GPT-OSS 20B", "Pre-Training", true, 2, 8, 1.0,
           "ep 8; every layer recomputed; all experts of a token on one GPU"},
    Recipe{"GPT-OSS 120B", "Pre-Training", false, 3, 64, 1.0,
           "ep 64; nothing recomputed; all experts of a token on one node"},
    Recipe{"Llama3 70B", "Pre-Training", true, 3, 1, 0.0,
           "every layer recomputed; keys and values in a ring"},
    Recipe{"Llama3 8B", "Fine-Tuning", false, 3, 1, 0.0, "rank 16; nothing recomputed"},
    Recipe{"Qwen2.5 7B", "Fine-Tuning", false, 3, 1, 0.0, "rank 16; nothing recomputed"},
    Recipe{"Llama3 70B", "Fine-Tuning", true, 3, 1, 0.0,
           "rank 16; every layer recomputed; asynchronous tensor parallelism"},
    Recipe{"Qwen2.5 32B", "Fine-Tuning", true, 3, 1, 0.0,
           "rank 16; every layer recomputed; no sequence parallelism"},
};

const Recipe& recipe_of(const CsvRow& row) {
  const auto* const found = std::ranges::find_if(kRecipes, [&](const Recipe& recipe) {
    return row.text("model").starts_with(recipe.model) &&
           row.text("section").starts_with(recipe.section);
  });
  if (found == kRecipes.end()) {
    row.fail("model", "no recipe is known for it");
  }
  return *found;
}

int count_or(const CsvRow& row, std::string_view column, int fallback) {
  return row.text(column).empty() ? fallback : count_of(row, column);
}

ParallelPlan plan_of(const CsvRow& row, const Recipe& recipe) {
  ParallelPlan plan;
  plan.tp = count_of(row, "tp");
  plan.pp = count_of(row, "pp");
  plan.cp = count_of(row, "cp");
  const int replica = plan.tp * plan.pp * plan.cp;
  const int gpus = count_of(row, "gpus");
  if (gpus % replica != 0) {
    row.fail("gpus", fmt::format("{} GPUs are no multiple of tp × pp × cp = {}", gpus, replica));
  }
  plan.dp = gpus / replica;
  plan.ep = count_or(row, "ep", recipe.ep);
  plan.sequence_parallel = !row.text("model").starts_with("Qwen2.5");
  plan.async_tp = plan.tp > 1 && row.text("model").starts_with("Llama3 70B");
  plan.zero = recipe.zero;
  plan.equal_replicas = true;
  return plan;
}

TrainingRun run_of(const CsvRow& row, const Recipe& recipe, const Cluster& cluster) {
  TrainingRun run;
  run.spec = public_model_spec(row.text("model"), row);
  run.spec.experts.copies = recipe.copies;
  run.spec.fused_loss = true;  // fp32_upcast: false
  const bool with_experts = run.spec.experts.count > 0;
  // Models with experts had no fused kernel for rotary positions before January 2026, and their
  // rows are of October 2025; the biases of GPT-OSS are added by PyTorch
  // (components/moe/layers.py).
  run.spec.fused_rotary = !with_experts;
  run.spec.experts.separate_biases = row.text("model").starts_with("GPT-OSS");
  run.spec.fused_accumulation = false;
  run.spec.lora_rank = recipe.section == "Fine-Tuning" ? 16 : 0;
  if (row.text("kernels").find("FlexAttn") != std::string_view::npos) {
    run.spec.attention = AttentionKernel::Flash2;
  }
  run.cluster = with_gpus(cluster, count_of(row, "gpus"));
  run.plan = plan_of(row, recipe);
  run.state = kAutoModel;
  run.recompute = recipe.recompute ? RecomputeMode::Full : RecomputeMode::Keep;
  run.sequence = count_of(row, "seq_len");
  run.sequences_per_microbatch = count_of(row, "microbatch_seq");
  const int batch = count_of(row, "local_batch_seq") / run.sequences_per_microbatch;
  const int steps = count_of(row, "grad_accum");
  if (run.plan.pp > 1) {  // the pipeline drains behind every local batch
    // Every step of PipelineScheduleMulti waits for its messages
    // (torch/distributed/pipelining/schedules.py, _wait_batch_p2p).
    run.blocking = true;
    run.chunks_per_rank = count_or(row, "vp", 1);
    run.schedule = run.chunks_per_rank > 1 ? "interleaved" : "1f1b";
    run.microbatches = batch;
    run.drains = steps;
  } else {
    run.schedule = "fsdp";
    run.microbatches = batch * steps;
  }
  return run;
}

}  // namespace

std::vector<ValidationSet> nemo_automodel_h100(const CsvTable& table) {
  ValidationSet set;
  set.name = "nemo_automodel_h100";
  set.title =
      "Public language models of 7B to 1T parameters on 1 to 1024 H100, with and without "
      "experts and LoRA";
  set.quantity = "step time";
  set.unit = "s";
  set.table = table.file();
  set.source = "github:NVIDIA-NeMo/Automodel@36044ad3d docs/performance-summary.mdx";
  set.bar_percent = 15.0;
  set.notes = {
      "Notes of rows are assumptions: the table does not say them; they are those of the recipes "
      "in examples/ at the time of the row. Experts have equally many rows (its balanced gate). No "
      "multi-token prediction. FlexAttention is timed as FlashAttention-2.",
      "With a pipeline weights are gathered and gradients reduced once per step, and the pipeline "
      "drains behind every local batch. The exchange of tokens is not hidden behind anything.",
      "Too fast by a fifth, with experts or without, as on other H100 tables: nothing that is "
      "fitted "
      "knows sustained speeds of training on H100. Hosts that wait for the number of rows of each "
      "expert before they issue the next kernels are not modelled. The row on 1024 GPUs has 8 "
      "chunks "
      "per rank in the table, and 4 in its recipe."};
  const Cluster cluster = load_cluster("h100-64");
  for (const CsvRow& row : table.rows()) {
    if (row.text("model").starts_with("Nemotron")) {
      set.unusable.push_back({row.line(), "state-space layers (Mamba) are not modelled"});
      continue;
    }
    const Recipe& recipe = recipe_of(row);
    const TrainingRun run = run_of(row, recipe, cluster);
    const TrainingPrediction prediction = predict(run);
    set.rows.push_back(
        {.label = fmt::format("{}, {} GPUs{}", row.text("model"), row.text("gpus"),
                              run.spec.lora_rank > 0 ? ", LoRA" : ""),
         .line = row.line(),
         .predicted = prediction.step_seconds,
         .measured = row.number("step_time_s", 1e-6),
         .work = prediction.model_flops * run.drains / (run.plan.rank_gpus() * run.plan.pp),
         .note = std::string(recipe.note)});
  }
  return {std::move(set)};
}

}  // namespace dipsim
