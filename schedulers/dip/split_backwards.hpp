// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/replica_graph.hpp"

namespace dipsim::dip {

/// Gives pairs whose W runs inside I (Draft::weights_at_once) the same strategy with a W of its
/// own, where the memory limit allows at the places where their passes stand. What follows I waits
/// less, the rank works as long: never slower. Re-times the composition.
void split_where_it_fits(const ReplicaGraph& replica, Composition& composition);

}  // namespace dipsim::dip
