// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/frame.hpp"
#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// SVG of a timeline: a row per rank, passes coloured by module and kind, labelled with their
/// microbatch where there is room; transfers, collectives and copies as a thin strip below. Free
/// ground is idle time. Graphs with many passes are drawn in pixel columns, so that the picture
/// stays below about 1.5 MB; of many ranks, 64 are shown.
std::string timeline_svg(const PlanRun& run, const PictureText& text);

}  // namespace dipsim
