// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/pair_bytes.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Where the pairs of a replica stand in the orders of their ranks. No allocation after
/// construction.
class PairPlaces {
 public:
  /// `replica` must outlive the places.
  explicit PairPlaces(const ReplicaGraph& replica);

  /// `sequence`: all passes; each rank's in its order, the passes of each pair in theirs.
  void find(std::span<const Index> sequence);

  [[nodiscard]] const PairPlace& operator[](Index pair) const { return place_[pair]; }

  /// Per position of a rank: free bytes while no pair holds anything.
  [[nodiscard]] std::span<const ByteCount> empty(Index rank) const {
    return std::span(empty_).subspan(first_slot_[rank], positions(rank));
  }

  /// Per position of a rank: the pair whose last pass stands there, or kNone.
  [[nodiscard]] std::span<const Index> ends(Index rank) const {
    return std::span(ends_).subspan(first_slot_[rank], positions(rank));
  }

  [[nodiscard]] std::span<const Index> pairs_of(Index rank) const {
    return std::span(pairs_).subspan(first_pair_[rank], first_pair_[rank + 1] - first_pair_[rank]);
  }

  [[nodiscard]] std::size_t positions(Index rank) const {
    return first_slot_[rank + 1] - first_slot_[rank];
  }

  /// Most positions, and most pairs, that a rank has.
  [[nodiscard]] std::size_t most_positions() const;
  [[nodiscard]] std::size_t most_pairs() const;

 private:
  const ReplicaGraph* graph_;
  std::vector<Index> pairs_;       ///< rank by rank
  std::vector<Index> first_pair_;  ///< per rank, and the end: its first place in pairs_
  std::vector<Index> first_slot_;  ///< per rank, and the end: its first place in the slots, which
                                   ///< are the positions of all ranks, rank by rank
  std::vector<Index> next_slot_;   ///< per rank
  std::vector<ByteCount> empty_;   ///< per slot
  std::vector<Index> ends_;        ///< per slot
  std::vector<PairPlace> place_;   ///< per pair
};

}  // namespace dipsim::dip
