// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/partition.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"

namespace dipsim::dip {

/// Evens out the work of the ranks: moves layers one by one from the rank with the most time (F and
/// B of the representative batch at the fastest strategies, embedding and head included) to
/// another one, within their module, as long as that lowers the larger time of the two. Every
/// chunk keeps a layer. Rank r also counts r × `ramp` × (F and B of the longest chunk on an average
/// microbatch): it can't start before something has come through the ranks before it, nor end last.
/// Writes ModulePlan::layers.
void balance_layers(const Lowering& lowering, const Batch& representative, PartitionPlan& plan,
                    double ramp);

}  // namespace dipsim::dip
