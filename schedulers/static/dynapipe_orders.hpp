// SPDX-License-Identifier: Apache-2.0
// The orders of microbatches that DynaPipe tries.
#pragma once

#include "schedulers/static/pipeline_instance.hpp"

#include <array>
#include <span>
#include <vector>

namespace dipsim {

/// What DynaPipe compares microbatches by: forward and backward on the first and the last stage.
using MicrobatchTimes = std::array<Duration, 4>;

/// Groups microbatches by k-means on their times. Deterministic: the first centres are the
/// microbatches at the quantiles (2i + 1)/2k of total time, equal distances go to the earlier
/// centre. At most `groups` groups, none empty, by centre from the first quantile up; inside a
/// group by number.
std::vector<std::vector<int>> group_microbatches(std::span<const MicrobatchTimes> times,
                                                 int groups);

/// The given order first; then all permutations of 3 groups of microbatches (4 where there are at
/// most 20 microbatches), or of the microbatches themselves where there are no more than that.
/// (DynaPipe, EuroSys'24; the authors' execution_planner.py, optimize_schedule, draws the order
/// inside a group at random; here it is the given one.)
std::vector<std::vector<int>> microbatch_orders(const PipelineInstance& instance);

}  // namespace dipsim
