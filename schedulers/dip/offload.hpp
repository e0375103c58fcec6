// SPDX-License-Identifier: Apache-2.0
// What follows a search: activations go to host memory where that spares recomputation.
#pragma once

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <vector>

namespace dipsim::dip {

/// A pair that offloads, and the passes of its rank between which its bytes are away
/// (dipsim::OffloadWindow).
struct PairWindow {
  Index pair = 0;
  Index strategy = 0;  ///< row among the allowed strategies of the pair
  Index freed_before = 0;
  Index fetched_after = 0;
};

/// Replaces recomputation by offloading at a fixed order of passes, rank by rank, as far as the
/// copy lanes have room and the memory limit holds at every position (docs/model.md, "Offloading").
/// A rank is changed only where the makespan does not grow, so the result is never slower than the
/// composition given. Pairs that offload keep, in the choice, the strategy that keeps all.
///
/// Returns the windows rank by rank in the order of their copies in. `composition` must fit.
std::vector<PairWindow> offload(const ReplicaGraph& replica, Composition& composition);

}  // namespace dipsim::dip
