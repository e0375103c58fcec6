// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstdint>
#include <vector>

namespace dipsim::dip {

/// Keeps forwards from filling the memory so that nothing can end. A component (microbatch) that
/// has begun needs room for its forwards to come; when it ends, it gives back all that it holds. A
/// state is safe when the components that have begun can end one after the other, in some order,
/// each in what is free by then (banker's algorithm: Dijkstra, EWD 623; Habermann, CACM 12(7),
/// 1969). What a component needs is counted as all that its forwards to come hold and the most that
/// one of its passes needs besides. Bytes that only wait for a W are not counted: W waits for
/// nothing. No allocation after construction.
class SafeState {
 public:
  /// `graph` must outlive the state.
  explicit SafeState(const ReplicaGraph& graph);

  /// Nothing has begun. `level` must stay until the next reset.
  void reset(const MemoryLevel& level);

  /// Whether the state is still safe when the forward of this pair runs now.
  [[nodiscard]] bool permits(Index pair) const;

  /// Whether a forward of the component has run.
  [[nodiscard]] bool has_begun(Index component) const { return has_begun_[component] != 0; }

  void run_forward(Index pair);
  void run_backward(Index pair);

  /// All passes of the component have run.
  void end(Index component);

 private:
  [[nodiscard]] std::size_t at(Index component, Index rank) const {
    return component * free_.size() + rank;
  }

  [[nodiscard]] bool all_fit_with(Index component) const;
  [[nodiscard]] bool can_end_in_turn(Index rank, Index pair) const;

  const ReplicaGraph* graph_;
  const MemoryLevel* level_ = nullptr;
  std::vector<ByteCount> held_;    ///< per component and rank
  std::vector<ByteCount> needed_;  ///< likewise: by its forwards to come
  std::vector<ByteCount> free_;    ///< per rank
  std::vector<ByteCount> begun_;   ///< per rank: most that those that have begun can hold together
  std::vector<Index> active_;      ///< components that have begun and not ended
  std::vector<std::uint8_t> has_begun_;
  mutable std::vector<ByteCount> trial_free_;  ///< of the check in progress
  mutable std::vector<Index> waiting_;
};

}  // namespace dipsim::dip
