// SPDX-License-Identifier: Apache-2.0
// Llama 3.1 trained with torchtitan on H100.
#include "validate/gpt.hpp"
#include "validate/llama.hpp"
#include "validate/sets.hpp"
#include "validate/training.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace dipsim {

namespace {

/// FSDP2: fp32 shards, gathered in bf16, gradients reduced in fp32.
constexpr TrainingState kFsdp2{.weights = 4.0,
                               .gradients = 4.0,
                               .optimizer = 8.0,
                               .gathered = 2.0,
                               .reduced = 4.0,
                               .step_traffic = 40.0};

TrainingRun titan_run(const CsvRow& row) {
  TrainingRun run;
  run.spec = llama_spec(std::string(row.text("model")), row);
  run.spec.products_again = true;
  run.spec.attention = AttentionKernel::Flash2;
  run.spec.fused_elementwise = row.text("technique") != "FSDP bf16";
  run.cluster = with_gpus(load_cluster("h100-96gb-64"), count_of(row, "gpus"));
  run.plan = {.tp = count_of(row, "tp"),
              .dp = count_of(row, "fsdp"),
              .sequence_parallel = true,
              .async_tp = row.text("technique").find("async TP") != std::string_view::npos,
              .zero = 3,
              .equal_replicas = true};
  run.state = kFsdp2;
  run.schedule = "fsdp";
  run.recompute =
      row.text("activation_ckpt") == "full" ? RecomputeMode::Full : RecomputeMode::Selective;
  run.sequence = count_of(row, "seq_len");
  run.sequences_per_microbatch = count_of(row, "local_batch_seq");
  run.microbatches = 1;
  return run;
}

bool is_bf16(std::string_view technique) {
  return technique.find("loat8") == std::string_view::npos;
}

}  // namespace

std::vector<ValidationSet> torchtitan(const CsvTable& table) {
  ValidationSet memory;
  memory.name = "torchtitan bf16 memory";
  memory.title = "Llama 3.1 8B on 8 and 128 H100 (96 GB HBM2e)";
  memory.quantity = "peak memory";
  memory.unit = "GiB";
  memory.table = table.file();
  memory.source = "github:pytorch/torchtitan@b5bcd76c6 benchmarks/";
  memory.bar_percent = 8.0;
  memory.notes = {
      "Allocator readings. Without a compiler fp32 copies inside norms are kept as well."};
  ValidationSet set;
  set.name = "torchtitan bf16";
  set.title = "Llama 3.1 of 8B and 70B parameters on 8 to 256 H100 (96 GB HBM2e, 500 W)";
  set.quantity = "tokens per second and GPU";
  set.unit = "tokens/s";
  set.table = table.file();
  set.source = "github:pytorch/torchtitan@b5bcd76c6 benchmarks/";
  set.bar_percent = 8.0;
  set.notes = {
      "Its H100 is a 96 GB part of 500 W: bandwidth as published, peaks times 500/700 (prior). "
      "FlashAttention-2 (PyTorch's default then); selective recomputation runs every second "
      "product "
      "again; the row without a compiler has unfused norms, rotary positions and gates, which "
      "accounts for the distance between the two.",
      "Too fast by an eighth to a sixth without tensor parallelism, as on other H100 tables, and "
      "by "
      "more where 8 GPUs share the layers of the 8B model."};
  for (const CsvRow& row : table.rows()) {
    if (!is_bf16(row.text("technique")) ||
        row.text("hardware").find("H100") == std::string_view::npos) {
      continue;
    }
    const TrainingRun run = titan_run(row);
    const TrainingPrediction prediction = predict(run);
    const double tokens = static_cast<double>(run.sequences_per_microbatch) * run.sequence;
    set.rows.push_back({.label = fmt::format("{}, {} GPUs, fsdp {} tp {}, {}", row.text("model"),
                                             run.plan.dp * run.plan.tp, run.plan.dp, run.plan.tp,
                                             row.text("technique")),
                        .line = row.line(),
                        .predicted = tokens / run.plan.tp / prediction.step_seconds,
                        .measured = row.number("tokens_per_s_per_gpu", 1e-6),
                        .work = 0.0,
                        .note = {}});
    if (const auto peak = row.number_if("peak_memory_gib", 1e-6)) {
      ValidationRow reading = set.rows.back();
      reading.predicted = prediction.peak_gib.front();
      reading.measured = *peak;
      memory.rows.push_back(std::move(reading));
    }
  }
  return {std::move(set), std::move(memory)};
}

}  // namespace dipsim
