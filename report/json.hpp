// SPDX-License-Identifier: Apache-2.0
// Results for programs. Keys stand in a fixed order, numbers read back exactly, unknown values are
// null, and nothing depends on the wall clock.
#pragma once

#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// Changes when a key changes its meaning or goes away, not when one is added.
inline constexpr int kResultSchemaVersion = 1;

/// Text of result.json: docs/metrics.md describes its keys. `winner` is null when nothing fits;
/// `idle_by_cause_ms` is a mean per iteration, summed over ranks.
std::string result_json(const Comparison& comparison);

/// The same keys for one plan, with plain numbers: `comparison` holds one schedule that ran one
/// iteration.
std::string simulation_json(const Comparison& comparison);

}  // namespace dipsim
