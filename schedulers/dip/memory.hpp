// SPDX-License-Identifier: Apache-2.0
// The choice of a strategy for each pair once the order is fixed.
#pragma once

#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/range_slack.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <span>
#include <vector>

namespace dipsim::dip {

/// Chooses the strategies of a replica for a fixed order. A pair holds its bytes over an interval
/// of positions in the order of its rank, so the limit is one constraint per position, and the
/// pass times play no part. Greedy: from the most saving strategies upwards, the step that saves
/// the most time per byte first; among steps of equal worth the pair whose backward comes first,
/// which for steps of equal size takes as many as any choice can (to make room for it, drop the
/// overlapping pair that starts first: that one blocks all that it blocks, and more). Not
/// thread-safe; no allocation after construction.
class MemoryChooser {
 public:
  /// `replica` must outlive the chooser.
  explicit MemoryChooser(const ReplicaGraph& replica);

  /// `sequence`: all passes; each rank's in its order, each forward before its backward, and such
  /// that the most saving strategies fit. Writes a choice that fits.
  void choose(std::span<const Index> sequence, std::span<Index> choice);

 private:
  /// A faster strategy that is worth its bytes.
  struct Step {
    Index from = 0;
    Index to = 0;
    ByteCount held = 0;     ///< more than `from`, from the forward up to the backward
    ByteCount at_last = 0;  ///< more than `from`, while the backward runs
    double worth = 0.0;     ///< nanoseconds saved per byte
    Index rank_class = 0;   ///< steps of equal worth on one rank, best first
  };

  /// A step of one pair, and the position of the last pass of that pair.
  struct Candidate {
    Index pair = 0;
    Index step = 0;
    Index last = 0;
  };

  void add_steps(Index pair);
  void number_classes();
  void find_positions(std::span<const Index> sequence);
  bool load(Index rank, std::span<const Index> choice);
  void sort_candidates(Index rank);
  void upgrade(Index rank, std::span<Index> choice);

  const ReplicaGraph* graph_;
  Choice most_saving_;
  Choice fastest_;
  std::vector<Step> steps_;         ///< pair by pair
  std::vector<Index> first_step_;   ///< per pair
  std::vector<Index> last_step_;    ///< per pair
  std::vector<Index> rank_class_;   ///< per rank, and the end: its first class
  std::vector<Index> class_first_;  ///< per class, and the end: its first place in candidates_
  std::vector<Index> pass_first_;   ///< per rank, and the end: its first place in order_

  // Of the call in progress:
  std::vector<Index> order_;     ///< passes, rank by rank, in the order of the rank
  std::vector<Index> position_;  ///< per pass: its position in the order of its rank
  std::vector<Index> pass_next_;
  std::vector<Candidate> candidates_;
  std::vector<Index> class_next_;
  std::vector<ByteCount> free_;
  RangeSlack slack_;
};

}  // namespace dipsim::dip
