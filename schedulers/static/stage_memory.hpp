// SPDX-License-Identifier: Apache-2.0
// How many layers a stage of 1F1B has room for.
#pragma once

#include "schedulers/partition.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/task_graph.hpp"

namespace dipsim {

/// For each rank, and each layer of the concatenated modules that its stage may begin with, where
/// the stage must end so that it fits in the memory of the rank. A stage needs the reserve,
/// weights, gradients and optimizer state of its layers, and at `activation_percent` of what they
/// are on the most demanding stretch of the batch: what its layers keep of the microbatches in
/// flight (p - i consecutive ones on rank i, the number that nnScaler's solver multiplies
/// activations with: pipeline_solver.py, calc_min_mem), and what the recomputation of one layer
/// brings back; with a split backward, where that is more, what one microbatch holds more from I to
/// W than before I. Scratch memory of a running pass is unknown here.
RunEnds stage_ends(const Lowering& lowering, const Batch& batch, RecomputeMode mode,
                   int activation_percent, bool split_backward = false);

}  // namespace dipsim
