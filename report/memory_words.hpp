// SPDX-License-Identifier: Apache-2.0
// Memory named by its contents: in a sentence and in a table.
#pragma once

#include "report/table.hpp"
#include "sim/graph/results.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

/// "weights 12.10, optimizer 3.02, activations 40.00 GiB": what is there, but for parts
/// that would show as zero.
std::string contents_text(const MemoryContents& contents);

/// The iteration on which the rank reaches its peak first.
std::size_t peak_iteration(const ScheduleResult& schedule, std::size_t rank);

/// "Rank 0 of dip peaks at 64.50 GiB of 76.00 GiB during F of microbatch 7 (vit) of iteration 3:
/// weights …", of the rank that comes nearest to its limit; "" without iterations.
std::string peak_sentence(const ScheduleResult& schedule, const ScheduleSummary& summary);

/// What the given rank holds at its peak in every phase of the sample iteration: a row per phase
/// that is not empty.
Table phase_table(const ScheduleResult& schedule, std::size_t rank);

/// Per phase what each rank holds at its peak there, on the sample iteration.
std::array<std::vector<std::optional<MemoryContents>>, kMemoryPhases.size()> all_phases(
    const ScheduleResult& schedule);

}  // namespace dipsim
