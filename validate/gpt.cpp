// SPDX-License-Identifier: Apache-2.0
#include "validate/gpt.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace dipsim {

namespace {

constexpr std::int64_t kMaxCount = 10'000'000;

}  // namespace

int count_of(const CsvRow& row, std::string_view column) {
  return static_cast<int>(row.whole(column, 1, kMaxCount));
}

ModuleSpec gpt_spec(const CsvRow& row, int vocabulary) {
  const int hidden = count_of(row, "hidden");
  const int heads = count_of(row, "heads");
  if (hidden % heads != 0 || hidden > 1'000'000) {
    row.fail("heads", fmt::format("{} heads do not share hidden {} evenly", heads, hidden));
  }
  return {.name = "gpt",
          .block = Block::Plain,
          .layers = count_of(row, "layers"),
          .hidden = hidden,
          .ffn = 4 * hidden,
          .heads = heads,
          .kv_groups = heads,
          .head_dim = hidden / heads,
          .attention = AttentionKernel::WrittenOut,
          .dropout = true,
          .fused_accumulation = false,
          .vocabulary = vocabulary};
}

ParallelPlan gpt_plan(const CsvRow& row, const ModuleSpec& spec) {
  const ParallelPlan plan{.tp = count_of(row, "tp"),
                          .pp = count_of(row, "pp"),
                          .dp = count_of(row, row.has("dp") ? "dp" : "dp_derived"),
                          .sequence_parallel = false,
                          .zero = 0,
                          .overlap_gradients = false,  // Megatron-LM before 2023
                          .equal_replicas = true};
  if (spec.heads % plan.tp != 0) {
    row.fail("tp", fmt::format("{} GPUs do not share {} heads evenly", plan.tp, spec.heads));
  }
  if (spec.layers < plan.pp) {
    row.fail("pp", fmt::format("{} stages for {} layers", plan.pp, spec.layers));
  }
  return plan;
}

double gpt_flops(const ModuleSpec& spec, double sequences, double sequence) {
  const double h = spec.hidden;
  const double l = spec.layers;
  return 72.0 * sequences * sequence * l * h * h *
         (1.0 + sequence / (6.0 * h) + spec.vocabulary / (12.0 * l * h));
}

TrainingRun gpt_run(const CsvRow& row, int vocabulary, const Cluster& cluster) {
  TrainingRun run;
  run.spec = gpt_spec(row, vocabulary);
  run.plan = gpt_plan(row, run.spec);
  run.state = {.weights = 2.0, .gradients = 2.0, .optimizer = 16.0, .reduced = 2.0};
  run.blocking = true;
  run.tied = true;
  run.cluster = with_gpus(cluster, run.plan.tp * run.plan.pp * run.plan.dp);
  run.sequence = count_of(row, "seq_len");
  run.sequences_per_microbatch = count_of(row, "microbatch_seq");
  const int batch = count_of(row, "global_batch_seq");
  const int per_step = run.plan.dp * run.sequences_per_microbatch;
  if (batch % per_step != 0) {
    row.fail("global_batch_seq", fmt::format("{} sequences are no multiple of {} replicas × {}",
                                             batch, run.plan.dp, run.sequences_per_microbatch));
  }
  run.microbatches = batch / per_step;
  return run;
}

ValidationRow step_row(const CsvRow& row, const TrainingRun& run, std::string label,
                       double measured) {
  const double sequences = static_cast<double>(run.sequences_per_microbatch) * run.microbatches;
  return {.label = std::move(label),
          .line = row.line(),
          .predicted = predict(run).step_seconds,
          .measured = measured,
          .work = gpt_flops(run.spec, sequences, run.sequence) / (run.plan.tp * run.plan.pp)};
}

}  // namespace dipsim
