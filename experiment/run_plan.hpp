// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/engine_options.hpp"
#include "sim/graph/plan_file.hpp"
#include "sim/graph/results.hpp"

namespace dipsim {

/// Runs a plan: a comparison of one schedule over one iteration. Its inputs are the provenance of
/// the plan with these engine options in place of the plan's own. Throws as simulate().
Comparison run_plan(PlanFile plan, const EngineOptions& engine);

}  // namespace dipsim
