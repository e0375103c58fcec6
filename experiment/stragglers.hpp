// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/machine.hpp"
#include "sim/graph/results.hpp"

namespace dipsim {

/// Fills in `result` which replica of the run ends last and why, and what slow ranks cost: runs the
/// same order again without jitter and at full speed where the run had other conditions.
void add_stragglers(const PlanRun& run, const Machine& machine, const TimelineAnalysis& analysis,
                    IterationResult& result);

}  // namespace dipsim
