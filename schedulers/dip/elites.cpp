// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/elites.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dipsim::dip {

void Elites::offer(const Candidate& candidate, const Composition& composition) {
  const auto makespan = [](const Found& found) { return found.composition.makespan; };
  const auto place = std::ranges::lower_bound(found_, composition.makespan, {}, makespan);
  if ((place == found_.end() && found_.size() == size_) ||
      (place != found_.end() && makespan(*place) == composition.makespan)) {
    return;
  }
  std::vector<MicrobatchId> begin = begin_order(candidate);
  const auto row = place - found_.begin();
  const auto alike = std::ranges::find(begins_, begin) - begins_.begin();
  if (alike < row) {
    return;
  }
  const auto replaced = std::min(alike, std::ssize(found_) - 1);
  if (alike < std::ssize(found_) || found_.size() == size_) {
    found_.erase(found_.begin() + replaced);
    begins_.erase(begins_.begin() + replaced);
  }
  found_.insert(found_.begin() + row, {.candidate = candidate, .composition = composition});
  begins_.insert(begins_.begin() + row, std::move(begin));
}

/// Microbatches in the order in which the forward priorities first name them.
std::vector<MicrobatchId> Elites::begin_order(const Candidate& candidate) const {
  std::vector<MicrobatchId> order;
  for (const Index group : candidate.order.forward) {
    const MicrobatchId microbatch = replica_->groups[group].microbatch;
    if (std::ranges::find(order, microbatch) == order.end()) {
      order.push_back(microbatch);
    }
  }
  return order;
}

}  // namespace dipsim::dip
