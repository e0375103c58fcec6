// SPDX-License-Identifier: Apache-2.0
// The same GPUs and data for schedules without a pipeline: every GPU is a replica.
#pragma once

#include "models/microbatch.hpp"
#include "models/model.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim {

/// All GPUs of `plan` as replicas that share weights, gradients and optimizer state (ZeRO-3).
ParallelPlan sharded_plan(const ParallelPlan& plan);

/// Deals microbatches to `replicas` for steps that all replicas take together: step k takes the
/// microbatches number k·replicas to (k+1)·replicas by FLOPs, heaviest first, so that nobody waits
/// long. In the order that make_batch() wants: replica by replica. `flops`: one per microbatch.
/// Throws Input, naming the nearest legal numbers for each of the plan's `pipelines` (its replicas
/// when it has pipelines), where the microbatches are no multiple of the replicas.
std::vector<Microbatch> deal_evenly(std::span<const Microbatch> microbatches,
                                    std::span<const double> flops, std::size_t replicas,
                                    std::size_t pipelines);

}  // namespace dipsim
