// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/schedule.hpp"
#include "sim/graph/timeline.hpp"

#include <span>
#include <vector>

namespace dipsim {

/// Memory of every rank over time. A pair holds Strategy::f_to_i from the start of its F to the end
/// of its I (or B), Strategy::i_to_w from there to the end of its W, and Strategy::rebuilt during
/// its I (or B); a task holds its `transient` while it runs; offloaded bytes are away from the end
/// of CopyOut to the start of CopyIn. At one instant what ends is released before what starts is
/// taken.
std::vector<MemoryCurve> memory_curves(const TaskGraph& graph, const Schedule& schedule,
                                       std::span<const Span> spans);

/// Most pairs that a rank holds at once, from the start of F to the end of W (or B).
std::vector<int> peak_in_flight(const TaskGraph& graph, std::span<const Span> spans);

}  // namespace dipsim
