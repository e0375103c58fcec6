// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <vector>

namespace dipsim::dip {

/// A copy on a lane.
struct PlannedCopy {
  Index pair = 0;
  Index position = 0;  ///< of the pass that decides its turn: F going out, the backward coming in
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};

/// Copies in the order of their positions, which do not overlap in time.
using CopyLane = std::vector<PlannedCopy>;

/// Rows [first, last) of a lane.
struct CopyRows {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Adds a copy out of `length` as early as its F, which ends at `ready`, and those before it allow;
/// those behind it move back. Returns the rows of what was added or moved.
CopyRows add_copy_out(CopyLane& lane, Index pair, Index position, Nanoseconds ready,
                      Nanoseconds length);

/// Adds a copy in as late as its backward, which starts at `deadline`, and those behind it allow;
/// those before it move forward. Times may become negative: then there is no room.
CopyRows add_copy_in(CopyLane& lane, Index pair, Index position, Nanoseconds deadline,
                     Nanoseconds length);

}  // namespace dipsim::dip
