// SPDX-License-Identifier: Apache-2.0
// Which tokens cross from one chunk to the next.
#pragma once

#include "models/cost_model.hpp"
#include "models/model.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/task_graph.hpp"

namespace dipsim {

/// Bytes per GPU, in bf16 and sharded over the GPUs of the rank, that a chunk hands to `to`.
/// Inside a module these are its tokens, for a DiT also those of the prompt; between two modules
/// the output tokens at the width of the consumer. Where a work has no module: everything alive at
/// the cut, outputs of modules that are still to be consumed included. Between modules of different
/// degrees: per GPU of the smaller group, whose links the whole tensor must pass.
Bytes boundary_bytes(const LmmModel& model, const std::vector<PlacedModule>& modules,
                     const Chunk& to, const Work& from_work, const Work& to_work,
                     const Batch& batch);

}  // namespace dipsim
