// SPDX-License-Identifier: Apache-2.0
// What the passes of a chunk cost on one work, under each way to keep activations.
#pragma once

#include "models/cost_model.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <vector>

namespace dipsim {

/// Keep, Selective and Full, fastest first, with b = i + w; modes that would save nothing are left
/// out. Only those of `layers` count that the work passes: all, or those of its module.
std::vector<Strategy> pass_strategies(const CostTable& table, std::span<const LayerRange> layers,
                                      const Work& work, const Batch& batch);

/// Scratch memory while one of the passes runs.
Bytes pass_transient(const CostTable& table, std::span<const LayerRange> layers, const Work& work,
                     const Batch& batch);

/// Keep, with all that it keeps copied to host memory; needs a cluster with host_gbytes_per_s.
Strategy offload_strategy(const Strategy& keep, const Cluster& cluster);

}  // namespace dipsim
