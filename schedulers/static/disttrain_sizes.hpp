// SPDX-License-Identifier: Apache-2.0
// Groups of GPUs for the modules of a model, sized for a batch: DistTrain's model orchestration.
#pragma once

#include "sim/core/units.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/task_graph.hpp"

#include <vector>

namespace dipsim {

/// A group per module, and how data flow through them.
struct SizedGroups {
  std::vector<ModuleGroup> groups;       ///< per module
  std::vector<std::vector<int>> layers;  ///< per module: of each stage
  int microbatches = 1;                  ///< of a replica that make a step
  Duration time{0};                      ///< joined_time() on the mean step
};

/// The groups that take all GPUs of a replica with the least joined_time() on `batch`, over every
/// division of the GPUs, every legal degree, number of stages and copies of every module, and every
/// number of microbatches per step that divides those of the fullest replica; the fewest
/// microbatches among equals. With `activation_percent` > 0 only groups in which the state and so
/// many percent of the activations in flight fit.
///
/// What a module takes per step at a degree with some copies is the mean, over the steps, of the
/// copy that deal() gives most, at the cost per unit of that load in the median step. Layers are
/// cut into stages of equal time, of which the slowest counts.
///
/// Throws Input where the GPUs of a replica do not suffice for one rank per module, or no division
/// uses all of them; Infeasible where none fits.
SizedGroups size_groups(const Lowering& lowering, const Batch& batch, RecomputeMode mode,
                        int activation_percent);

}  // namespace dipsim
