// SPDX-License-Identifier: Apache-2.0
// What microbatches need on a rank, and the limits that follow from it.
#pragma once

#include "schedulers/static/pipeline_instance.hpp"

#include <span>
#include <vector>

namespace dipsim {

/// The stages of each rank, in flow order.
std::vector<std::vector<int>> stages_of_ranks(const PipelineInstance& instance);

/// The most that a rank with these stages holds of one microbatch from its n-th pass (F or I) on,
/// for n = 0, 1, …: its forwards in flow order, then its backwards against it, each W right after
/// its I. Appends 2 × chunks values, the last ones zero where stages have no backward.
void append_needs(const PipelineInstance& instance, std::span<const int> stages, int microbatch,
                  std::vector<Bytes>& needs);

/// Limits per rank: `multiple` times the most that p successive microbatches hold together between
/// F and I on the rank's stages, plus the most that one of them takes on top of that, while a pass
/// runs or between I and W. With 1, this is what 1F1B holds there if it is its first rank and runs
/// every W right after its I. Never above the rank's room.
std::vector<Bytes> one_f_one_b_memory(const PipelineInstance& instance, int multiple);

}  // namespace dipsim
