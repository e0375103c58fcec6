// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/schedule_choice.hpp"
#include "models/synthetic.hpp"
#include "sim/graph/plan_file.hpp"

namespace dipsim {

/// Plans a synthetic pipeline with a schedule; SyntheticSpec::chunks counts unless the schedule has
/// the option chunks=. Throws Input on recompute=, which such a pipeline does not have.
PlanFile synthetic_plan(SyntheticSpec spec, ScheduleChoice choice);

}  // namespace dipsim
