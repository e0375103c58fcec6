// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/copy_lanes.hpp"

#include <algorithm>

namespace dipsim::dip {

namespace {

std::size_t row_for(const CopyLane& lane, Index position) {
  const auto at = std::ranges::lower_bound(lane, position, {}, &PlannedCopy::position);
  return static_cast<std::size_t>(at - lane.begin());
}

}  // namespace

CopyRows add_copy_out(CopyLane& lane, Index pair, Index position, Nanoseconds ready,
                      Nanoseconds length) {
  const std::size_t row = row_for(lane, position);
  const Nanoseconds start = row > 0 ? std::max(ready, lane[row - 1].end) : ready;
  lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(row),
              {.pair = pair, .position = position, .start = start, .end = start + length});
  std::size_t last = row + 1;
  for (; last < lane.size() && lane[last].start < lane[last - 1].end; ++last) {
    const Nanoseconds later = lane[last - 1].end - lane[last].start;
    lane[last].start += later;
    lane[last].end += later;
  }
  return {.first = row, .last = last};
}

CopyRows add_copy_in(CopyLane& lane, Index pair, Index position, Nanoseconds deadline,
                     Nanoseconds length) {
  const std::size_t row = row_for(lane, position);
  const Nanoseconds end = row < lane.size() ? std::min(deadline, lane[row].start) : deadline;
  lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(row),
              {.pair = pair, .position = position, .start = end - length, .end = end});
  std::size_t first = row;
  for (; first > 0 && lane[first - 1].end > lane[first].start; --first) {
    const Nanoseconds earlier = lane[first - 1].end - lane[first].start;
    lane[first - 1].start -= earlier;
    lane[first - 1].end -= earlier;
  }
  return {.first = first, .last = row + 1};
}

}  // namespace dipsim::dip
