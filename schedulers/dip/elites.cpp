// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/elites.hpp"

#include <algorithm>

namespace dipsim::dip {

void Elites::offer(const Candidate& candidate, const Composition& composition) {
  const auto makespan = [](const Found& found) { return found.composition.makespan; };
  const auto place = std::ranges::lower_bound(found_, composition.makespan, {}, makespan);
  if (place != found_.end() && makespan(*place) == composition.makespan) {
    return;
  }
  const auto row = place - found_.begin();
  if (found_.size() == size_) {
    if (place == found_.end()) {
      return;
    }
    found_.pop_back();
  }
  found_.insert(found_.begin() + row, {.candidate = candidate, .composition = composition});
}

}  // namespace dipsim::dip
