// SPDX-License-Identifier: Apache-2.0
// Orders that several schedules share.
#pragma once

#include "schedulers/static/static_planner.hpp"

#include <string_view>
#include <vector>

namespace dipsim {

/// Per rank; more than any model has layers there.
inline constexpr int kMostChunks = 10'000;

/// 1F1B: min(p − 1 − i, m) forwards, then (F, B) pairs, then the backwards that are left
/// (Megatron-LM schedules.py, forward_backward_pipelining_without_interleaving).
std::vector<Step> one_f_one_b_steps(const PipelineShape& shape, int rank);

/// Interleaved 1F1B: min(2(p − 1 − i) + (v − 1)p, mv) forwards, then (F, B) pairs, then the
/// backwards that are left (Megatron-LM schedules.py, get_pp_rank_microbatches). Only for shapes
/// with whole groups of microbatches.
std::vector<Step> interleaved_steps(const PipelineShape& shape, int rank);

/// Throws Input, naming the nearest legal number, unless the microbatches are a multiple of the
/// ranks, as interleaving requires.
void require_whole_groups(const PipelineShape& shape, std::string_view schedule);

/// Megatron-LM's choice by the number of chunks: 1F1B with one, interleaved with several.
std::vector<Step> megatron_steps(const PipelineShape& shape, int rank);

/// Throws Input where megatron_steps() has no order.
void require_megatron_shape(const PipelineShape& shape, std::string_view schedule);

/// `asked` with 1, 2, 4, ... chunks per rank as long as every one of them has a layer, at least
/// with one; or just as it is, where it names a number.
std::vector<PlannerOptions> megatron_alternatives(const PlannerOptions& asked, int layers,
                                                  int ranks);

}  // namespace dipsim
