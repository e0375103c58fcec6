// SPDX-License-Identifier: Apache-2.0
// The choice of a strategy for each pair once the order is fixed.
#pragma once

#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/pair_bytes.hpp"
#include "schedulers/dip/pair_places.hpp"
#include "schedulers/dip/range_slack.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <limits>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Chooses the strategies of a replica for a fixed order. A pair holds its bytes over an interval
/// of positions in the order of its rank, so the limit is one constraint per position, and the
/// pass times play no part. Greedy: from the most saving strategies upwards, the step that saves
/// the most time per byte first; among steps of equal worth the pair whose last pass comes first,
/// which for steps of equal size takes as many as any choice can (to make room for it, drop the
/// overlapping pair that starts first: that one blocks all that it blocks, and more). Not
/// thread-safe; no allocation after construction.
class MemoryChooser {
 public:
  /// `replica` must outlive the chooser.
  explicit MemoryChooser(const ReplicaGraph& replica);

  /// `sequence`: all passes; each rank's in its order, the passes of each pair in theirs, and such
  /// that the most saving strategies fit. Writes a choice that fits.
  void choose(std::span<const Index> sequence, std::span<Index> choice);

 private:
  /// A faster strategy.
  struct Step {
    Index to = 0;
    PairBytes more;  ///< than the strategy that the climb starts from
  };

  /// Steps of one pair that are of equal worth: as many as there is room for are taken at once.
  struct Climb {
    Index first_step = 0;  ///< [first_step, last_step) in steps_
    Index last_step = 0;
    Index from = 0;  ///< where the pair stands when it can begin
    Index pair = 0;
    double worth = 0.0;    ///< nanoseconds saved per byte, of its first step
    Index rank_class = 0;  ///< climbs of equal worth on one rank, best first
    ByteCount least_during = std::numeric_limits<ByteCount>::max();  ///< of Step::more
    ByteCount most_after = 0;                                        ///< of Step::more
  };

  void add_climbs(Index pair);
  void add_steps(std::span<const PairOption> options, Climb& climb, ByteCount held);
  void number_classes();
  bool load(Index rank, std::span<const Index> choice);
  bool settle(Index rank, Index end, std::span<Index> choice);
  Index first_scarce_class(Index rank, std::span<Index> choice);
  void sort_climbs(Index rank, Index first_class);
  void upgrade(Index rank, std::span<Index> choice);
  void take(const Climb& climb, std::span<Index> choice);

  const ReplicaGraph* graph_;
  Choice most_saving_;
  Choice fastest_;
  std::vector<Step> steps_;
  std::vector<Climb> climbs_;       ///< pair by pair, in the order in which a pair can make them
  std::vector<Index> first_climb_;  ///< per pair, and the end
  std::vector<Index> rank_class_;   ///< per rank, and the end: its first class
  std::vector<Index> class_first_;  ///< per class, and the end: its first place in sorted_

  // Of the call in progress:
  PairPlaces places_;
  std::vector<ByteCount> free_;    ///< per position of the rank in progress, and the end
  std::vector<Index> sorted_;      ///< climbs by rank, class and position of the last pass
  std::vector<Index> class_next_;  ///< per class: end of what sorted_ has of it
  RangeSlack slack_;
};

}  // namespace dipsim::dip
