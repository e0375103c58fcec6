// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// SVG that compares the schedules: bars of the mean iteration time with whiskers from the least
/// to the largest, and below, where several iterations were run, a line per schedule over the
/// iterations on top of the load (the first LoadSeries) as a grey area.
std::string comparison_svg(const Comparison& comparison);

}  // namespace dipsim
