// SPDX-License-Identifier: Apache-2.0
// Step times of GPT training with Megatron-LM on A100.
#include "validate/gpt.hpp"
#include "validate/sets.hpp"
#include "validate/training.hpp"

#include <fmt/format.h>

#include <utility>

namespace dipsim {

namespace {

TrainingRun megatron_run(const CsvRow& row, const Cluster& cluster) {
  TrainingRun run = gpt_run(row, count_of(row, "vocab"), cluster);
  run.state = kMegatronFp16;
  run.recompute = RecomputeMode::Full;
  run.chunks_per_rank = count_of(row, "virtual_stages_per_rank");
  run.schedule = run.chunks_per_rank > 1 ? "interleaved" : "1f1b";
  return run;
}

}  // namespace

std::vector<ValidationSet> megatron_sc21_table1(const CsvTable& table) {
  ValidationSet set;
  set.name = "megatron_sc21_table1";
  set.title = "GPT of 1.7B to 1T parameters on 32 to 3072 A100";
  set.quantity = "step time";
  set.unit = "s";
  set.table = table.file();
  set.source = "arXiv:2104.04473 Table 1";
  set.bar_percent = 4.0;
  set.notes = {
      "Weight gradients are added up by a kernel of their own, as before January 2022.",
      "Rows with several chunks per rank fall further short than the others. Their chunks are "
      "those "
      "of the authors' script; the table does not print them. With one chunk per rank they would "
      "take 5 to 8 % longer, and be as near as the others."};
  const Cluster cluster = load_cluster("a100-64");
  for (const CsvRow& row : table.rows()) {
    const TrainingRun run = megatron_run(row, cluster);
    set.rows.push_back(step_row(
        row, run,
        fmt::format("{}B, {} GPUs", row.text("params_b"), run.plan.tp * run.plan.pp * run.plan.dp),
        row.number("iteration_time_s_derived", 1e-6)));
  }
  return {std::move(set)};
}

std::vector<ValidationSet> megatron_seqpar_iteration_times(const CsvTable& table) {
  ValidationSet set;
  set.name = "megatron_seqpar_iteration_times";
  set.title = "GPT of 22B to 1T parameters on 8 to 512 A100, by recompute mode";
  set.quantity = "step time";
  set.unit = "s";
  set.table = table.file();
  set.source = "arXiv:2205.05198 Tables 3 and 5";
  set.claim_percent = 3.65;
  set.claim_source = "Calculon (SC 2023), on these rows";
  set.bar_percent = 3.65;
  const Cluster cluster = load_cluster("a100-64");
  for (const CsvRow& row : table.rows()) {
    if (row.text("provenance") != "stored") {
      set.unusable.push_back({row.line(), "the step time is recalled, not stored"});
      continue;
    }
    TrainingRun run = megatron_run(row, cluster);
    run.spec.fused_accumulation = true;
    const bool selective = row.text("mode") == "selective_recompute_plus_sp";
    if (selective) {
      run.plan.sequence_parallel = true;
      run.recompute = RecomputeMode::Selective;
    }
    set.rows.push_back(step_row(row, run,
                                fmt::format("{}, {}", row.text("model"),
                                            selective ? "selective + sequence parallel" : "full"),
                                row.number("iteration_time_s", 1e-6)));
  }
  return {std::move(set)};
}

}  // namespace dipsim
