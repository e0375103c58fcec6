// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/options.hpp"
#include "schedulers/dip/partition.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"

namespace dipsim::dip {

/// Slices and segments by search instead of by the paper's rules: the plan with the least makespan
/// on the representative batch. Starts from every combination of the rules' K and 1 to 3 segments
/// at the rules' B, then changes B or K of one module at a time, to any of options.slice_sizes or
/// by one, while that helps; a plan counts as what plan_by_descent() gives without evaluations, and
/// the best few are compared again with some. With options.balance every plan is tried with
/// balance_layers() at several ramps too. Plans that don't fit are passed over; where none fits,
/// the rules' plan is returned, as without options.partitioner. Runs on options.jobs threads; the
/// plan does not depend on them.
PartitionPlan search_partition(const Lowering& lowering, const Batch& representative,
                               const DipOptions& options);

}  // namespace dipsim::dip
