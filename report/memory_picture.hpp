// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/frame.hpp"
#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// SVG of the memory of every rank over time against its limit: a panel per rank, what is held
/// during the whole iteration shaded, the peak marked. Of many ranks, the 16 fullest are shown.
std::string memory_svg(const PlanRun& run, const PictureText& text);

}  // namespace dipsim
