// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/found.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// The best few that a search has come across, all of different makespans, since equal ones are
/// most often the same order by another name.
class Elites {
 public:
  explicit Elites(std::size_t size) : size_(size) {}

  void offer(const Candidate& candidate, const Composition& composition);

  /// Best first.
  [[nodiscard]] std::span<const Found> all() const { return found_; }

 private:
  std::size_t size_;
  std::vector<Found> found_;
};

}  // namespace dipsim::dip
