// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/found.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/ids.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// The best few that a search has come across, as different as can be: of those whose forward
/// priorities begin the microbatches in the same order, only the best; and all of different
/// makespans, since equal ones are most often the same order by another name.
class Elites {
 public:
  /// `replica` must outlive the elites.
  Elites(const ReplicaGraph& replica, std::size_t size) : replica_(&replica), size_(size) {}

  void offer(const Candidate& candidate, const Composition& composition);

  /// Best first.
  [[nodiscard]] std::span<const Found> all() const { return found_; }

 private:
  [[nodiscard]] std::vector<MicrobatchId> begin_order(const Candidate& candidate) const;

  const ReplicaGraph* replica_;
  std::size_t size_;
  std::vector<Found> found_;
  std::vector<std::vector<MicrobatchId>> begins_;  ///< per found
};

}  // namespace dipsim::dip
