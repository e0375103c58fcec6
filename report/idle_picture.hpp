// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// SVG of where the iteration time of an average rank goes: a bar per schedule, split into
/// computing, idle time by cause, and gradient reduction with the optimizer.
std::string idle_svg(const Comparison& comparison);

}  // namespace dipsim
