// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// Text of NAME.trace.json in the Trace Event Format, which Perfetto and chrome://tracing open:
/// a process per rank, a thread per lane (more where tasks of a lane overlap in time), times in µs
/// exact to the nanosecond, arrows from a transfer to the pass that waits for it, and the memory of
/// each rank as a counter.
std::string chrome_trace(const PlanRun& run);

}  // namespace dipsim
