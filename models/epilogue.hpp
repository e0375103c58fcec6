// SPDX-License-Identifier: Apache-2.0
// What follows the passes of an iteration: gradient reduction and optimizer.
#pragma once

#include "models/lower.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dipsim {

/// What is left of a reduction of `whole` when the pass beside which its equal buckets run ends. A
/// pass of `beside` makes their gradients at an even pace; a bucket starts when its gradients are
/// there and the one before it is through, so the last one always remains:
///
///   max(whole / buckets, whole − beside · (buckets − 1) / buckets)
Duration exposed_reduction(Duration whole, int buckets, Duration beside);

/// Gradient reduction of one weight set.
struct Reduction {
  ChunkId chunk;  ///< the first of the set
  Duration time{0};
  Bytes bytes;
  int buckets = 1;
  std::vector<RankId> group;  ///< ascending
};

/// The tasks that follow the passes: first the reductions, then the optimizer steps by rank.
class Epilogue {
 public:
  Epilogue(const Placement& placement, const CostSource& costs);

  [[nodiscard]] std::size_t tasks() const { return reductions_.size() + optimizers_.size(); }

  /// Edges among its own tasks.
  [[nodiscard]] std::size_t edges() const;

  /// Number (from 0) of the task that waits for the passes of this chunk of this rank; negative
  /// where nothing does.
  [[nodiscard]] std::int32_t follower(ChunkId chunk, RankId rank) const;

  /// Adds its tasks, the edges among them and the groups of its reductions. `shortest`: per chunk,
  /// of the passes that may be its last; Duration::max() where it has none.
  void append_to(TaskGraph& graph, std::span<const Duration> shortest) const;

 private:
  /// Optimizer step of one rank.
  struct Step {
    RankId rank;
    Duration time{0};
    Bytes transient;
  };

  void append_reductions(TaskGraph& graph, std::span<const Duration> shortest) const;

  /// Shortest last pass of all chunks that the reduction is for; 0 where they have none.
  [[nodiscard]] Duration beside(std::int32_t reduction, std::span<const Duration> shortest) const;

  std::vector<Reduction> reductions_;
  std::vector<Step> optimizers_;
  std::vector<std::int32_t> reduction_of_chunk_;  ///< negative: none
  std::vector<std::int32_t> optimizer_of_rank_;   ///< negative: none
};

}  // namespace dipsim
