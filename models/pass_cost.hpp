// SPDX-License-Identifier: Apache-2.0
// What the passes of a chunk cost on one work, under each way to keep activations.
#pragma once

#include "models/cost_model.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <vector>

namespace dipsim {

/// S of arXiv 2504.14145 (level 3 of the schedule searcher): candidates per pair.
inline constexpr int kStrategyCandidates = 10;

/// Keep, Selective and Full, fastest first, with b = i + w; modes that would save nothing are left
/// out. Only those of `layers` count that the work passes: all, or those of its module. With
/// `candidates` > 0 the layer_mixes() of as many as that stand among them, as Mixed; those that
/// another strategy matches in time, bytes held and bytes rebuilt are left out.
std::vector<Strategy> pass_strategies(const CostTable& table, std::span<const LayerRange> layers,
                                      const Work& work, const Batch& batch, int candidates = 0);

/// Scratch memory while one of the passes runs.
Bytes pass_transient(const CostTable& table, std::span<const LayerRange> layers, const Work& work,
                     const Batch& batch);

/// Keep, with all that it keeps copied to host memory; needs a cluster with host_gbytes_per_s.
Strategy offload_strategy(const Strategy& keep, const Cluster& cluster);

}  // namespace dipsim
