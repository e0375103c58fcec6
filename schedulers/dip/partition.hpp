// SPDX-License-Identifier: Apache-2.0
// The modality-aware partitioner (arXiv 2504.14145): slices and segments of every module.
#pragma once

#include "schedulers/dip/options.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/task_graph.hpp"

#include <vector>

namespace dipsim::dip {

/// How one module runs through the pipeline.
struct ModulePlan {
  int slice_instances = 0;    ///< B: most instances per slice; 0: whole microbatches
  int segments = 1;           ///< K: sweeps over all ranks
  std::vector<int> layers{};  ///< per chunk; empty: as even_layers() has it
  friend bool operator==(const ModulePlan&, const ModulePlan&) = default;
};

struct PartitionPlan {
  std::vector<ModulePlan> modules;
  std::vector<Note> notes;  ///< every number behind it
};

/// `layers` spread evenly over `chunks`: where they don't divide, the first chunks have one more.
std::vector<int> even_layers(int layers, int chunks);

/// The paper's rule, module by module, on the instance of median size in the representative batch
/// and the fastest strategy:
///  - B is the smallest size tried with at least `efficiency` of the best throughput (instances
///    per time of F and B) over all sizes; 1 where no microbatch has more than one instance;
///  - T is the time of F and B of B instances, K = floor(T / least T of all modules), at most
///    floor(layers / ranks), so that every chunk has a layer, and at most max_segments.
/// A module that the batch has nothing for gets whole microbatches and one segment. Throws Input
/// where a module has fewer layers than there are ranks.
PartitionPlan choose_partition(const Lowering& lowering, const Batch& representative,
                               const DipOptions& options);

/// Ranks × K chunks per module and replica, chunk c on rank c mod ranks. Throws Input where a chunk
/// would be left without a layer.
Placement place_modules(const Lowering& lowering, const PartitionPlan& plan);

/// Cuts the N instances of each module and microbatch into ceil(N / B) slices whose sizes differ
/// by at most one; the larger ones come first.
Draft slice_batch(const Placement& placement, const Batch& batch);

}  // namespace dipsim::dip
