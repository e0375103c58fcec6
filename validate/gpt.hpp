// SPDX-License-Identifier: Apache-2.0
// Rows about GPT models of Megatron-LM's shape.
#pragma once

#include "models/model.hpp"
#include "models/training_state.hpp"
#include "validate/csv_table.hpp"
#include "validate/training.hpp"
#include "validate/validation_set.hpp"

#include <string>
#include <string_view>

namespace dipsim {

/// Columns hidden, heads and layers: FFN of four times the hidden width, as many key heads as
/// heads, dropout, attention written out as before fused kernels.
ModuleSpec gpt_spec(const CsvRow& row, int vocabulary);

/// Columns tp, pp and dp, without sequence parallelism or shared optimizer state. Throws Input
/// where tp does not divide the heads.
ParallelPlan gpt_plan(const CsvRow& row, const ModuleSpec& spec);

/// The job of a row (also columns seq_len, microbatch_seq, global_batch_seq) in fp16, without
/// recomputation: a framework that waits for every pass and its transfers, on so many nodes of
/// `cluster` as it needs. Throws Input where the batch does not divide.
TrainingRun gpt_run(const CsvRow& row, int vocabulary, const Cluster& cluster);

/// The step time of a run beside a measured one, in seconds; its work are the FLOPs per GPU.
ValidationRow step_row(const CsvRow& row, const TrainingRun& run, std::string label,
                       double measured);

/// Useful FLOPs of a training step, recomputation left out: 72 B s l h² (1 + s/6h + V/12lh)
/// (arXiv 2205.05198 eq. 7).
double gpt_flops(const ModuleSpec& spec, double sequences, double sequence);

/// fp16 training with Megatron-LM's loss scaling: gradients stay in fp16 and travel so; the step
/// copies them to fp32 (2 + 4), unscales and checks them (8), adds up their squares (4), scales
/// them to the clipped norm (8), and then is Adam's (16 + 12), which copies the weights (4 + 2).
inline constexpr TrainingState kMegatronFp16{
    .weights = 2.0, .gradients = 2.0, .optimizer = 16.0, .reduced = 2.0, .step_traffic = 60.0};

/// A whole number of a column, from 1 on.
int count_of(const CsvRow& row, std::string_view column);

}  // namespace dipsim
