// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/memory_problem.hpp"
#include "schedulers/dip/memory_solver.hpp"
#include "schedulers/dip/pair_places.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <span>
#include <vector>

namespace dipsim::dip {

/// Chooses strategies for a fixed order with MemorySolver, rank by rank, and proves how good the
/// choice is: dearer and better than MemoryChooser. Not thread-safe; no allocation after
/// construction.
class MemoryImprover {
 public:
  /// `replica` must outlive the improver.
  explicit MemoryImprover(const ReplicaGraph& replica);

  /// `sequence`: as MemoryChooser::choose() takes it. `choice`: one that fits, such as it writes.
  /// Whether the passes of some rank take less time afterwards, together; those of no rank take
  /// more. A rank on which the fastest strategies fit is left as it is, if it uses them.
  bool improve(std::span<const Index> sequence, std::span<Index> choice,
               const MemoryEffort& effort = {.gap = 0.0});

  /// Per rank, of the last call.
  [[nodiscard]] std::span<const MemoryProof> proofs() const { return proofs_; }

 private:
  const ReplicaGraph* graph_;
  PairPlaces places_;
  MemorySolver solver_;
  std::vector<MemoryPair> pairs_;  ///< of the rank in progress
  std::vector<Index> chosen_;
  std::vector<MemoryProof> proofs_;
};

}  // namespace dipsim::dip
