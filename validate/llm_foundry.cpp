// SPDX-License-Identifier: Apache-2.0
// Step times of MPT training with FSDP.
#include "validate/gpt.hpp"
#include "validate/sets.hpp"
#include "validate/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

struct Hardware {
  std::string_view gpu;  ///< in the table
  std::string_view cluster;
};

constexpr std::array kHardware = {Hardware{"h100_80gb", "h100-64"},
                                  Hardware{"a100_80gb", "a100-64"},
                                  Hardware{"a100_40gb", "a100-40gb-64"}};

/// MPT (github:mosaicml/llm-foundry): no biases and no dropout, FlashAttention.
ModuleSpec mpt_spec(const CsvRow& row) {
  ModuleSpec spec = gpt_spec(row, count_of(row, "vocab"));
  spec.name = "mpt";
  spec.attention = AttentionKernel::Triton;
  spec.dropout = false;
  return spec;
}

TrainingRun mpt_run(const CsvRow& row, std::string_view cluster) {
  TrainingRun run;
  run.spec = mpt_spec(row);
  const int gpus = count_of(row, "gpus");
  run.cluster = with_gpus(load_cluster(std::string(cluster)), gpus);
  run.plan = {
      .dp = gpus, .zero = row.text("sharding") == "FULL_SHARD" ? 3 : 2, .equal_replicas = true};
  run.state = {.weights = 4.0,
               .gradients = 4.0,
               .optimizer = 8.0,
               .gathered = 2.0,
               .reduced = 2.0,
               .step_traffic = 40.0};
  run.schedule = "fsdp";
  run.recompute = row.text("act_ckpt") == "True" ? RecomputeMode::Full : RecomputeMode::Keep;
  run.sequence = count_of(row, "seq_len");
  run.sequences_per_microbatch = count_of(row, "microbatch_seq");
  run.microbatches = count_of(row, "grad_accum");
  return run;
}

}  // namespace

std::vector<ValidationSet> llm_foundry_mpt(const CsvTable& table) {
  std::vector<ValidationSet> sets;
  for (const Hardware& hardware : kHardware) {
    ValidationSet& set = sets.emplace_back();
    set.name = fmt::format("llm_foundry_mpt {} bf16", hardware.gpu);
    set.title = fmt::format("MPT of 125M to 70B parameters on {}", hardware.gpu);
    set.quantity = "step time";
    set.unit = "s";
    set.table = table.file();
    set.source = "github:mosaicml/llm-foundry@8c8dd48f7 scripts/train/benchmarking/README.md";
    set.bar_percent = 7.0;
    set.notes = {
        "Attention as FlashAttention in Triton (the attn_impl of that time), elementwise kernels "
        "fused as PyTorch ships them.",
        "Too fast throughout. On A100 80 GB rows without recomputation miss by about a tenth "
        "whatever width and length, those with it by little; on H100 all miss by about a quarter. "
        "Nothing that is fitted knows sustained speeds of training on H100: its curves are short "
        "benchmarks of single kernels, and no step time may enter them."};
  }
  for (const CsvRow& row : table.rows()) {
    const auto hardware = std::ranges::find(kHardware, row.text("gpu"), &Hardware::gpu);
    if (hardware == kHardware.end() || row.text("precision") == "amp_fp8") {
      continue;
    }
    const TrainingRun run = mpt_run(row, hardware->cluster);
    ValidationSet& set = sets[static_cast<std::size_t>(hardware - kHardware.begin())];
    set.rows.push_back(
        {.label =
             fmt::format("{}, {} GPUs, {} x {} sequences of {}{}", row.text("model"), run.plan.dp,
                         run.microbatches, run.sequences_per_microbatch, run.sequence,
                         run.recompute == RecomputeMode::Full ? ", recomputed" : ""),
         .line = row.line(),
         .predicted = predict(run).step_seconds,
         .measured = row.number("step_time_s_derived", 1e-6),
         .work = gpt_flops(run.spec,
                           static_cast<double>(run.microbatches) * run.sequences_per_microbatch,
                           run.sequence),
         .note = {}});
  }
  return sets;
}

}  // namespace dipsim
