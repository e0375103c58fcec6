// SPDX-License-Identifier: Apache-2.0
// Changes of an order that concern many passes at once, which no chain of single moves would pass
// through without breaking it.
#pragma once

#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Which passes go where: on every rank, or one, the forwards or backwards of one group go next to
/// those of another.
struct GroupMove {
  Index group = 0;
  bool forward = true;  ///< of `group`: its forwards, else its backwards
  Index target = 0;     ///< likewise a group
  bool target_forward = true;
  bool later = false;                ///< directly behind the passes of the target, else before them
  Index rank = ReplicaGraph::kNone;  ///< none: every rank
};

/// Makes new sequences out of given ones. Every result follows precedence: a pass that would come
/// before something it waits for goes just behind that. Results hold until the next call. Not
/// thread-safe.
class Rearranger {
 public:
  /// `replica` must outlive the rearranger.
  explicit Rearranger(const ReplicaGraph& replica);

  /// Two microbatches (components) change places: each pass of one goes where the other's pass of
  /// the same chunk and kind stands; what only one of them has stays.
  std::span<const Index> exchange(std::span<const Index> sequence, Index one, Index other);

  /// Passes whose rank has none of the target stay. Of several passes on a rank the i-th goes next
  /// to the target's i-th, or its last.
  std::span<const Index> move_group(std::span<const Index> sequence, const GroupMove& move);

  /// Places the W passes anew, oldest first, all others staying in order: where a rank would idle
  /// for at least the share `fit` of the time of the next W, where what comes next does not fit in
  /// memory without, and at the end. `choice` per pair, `durations` per pass.
  std::span<const Index> refill(std::span<const Index> sequence, std::span<const Index> choice,
                                std::span<const Nanoseconds> durations, double fit);

 private:
  /// Of one rank while W passes are placed.
  struct Filling {
    std::vector<Index> waiting;  ///< W whose I has run
    std::size_t next = 0;        ///< the oldest of them that has not run
    ByteCount held = 0;
  };

  void begin(std::span<const Index> sequence);
  void put(Index pass, std::uint64_t place);
  void sort_by_place();
  void run(Index pass, std::span<const Index> choice, std::span<const Nanoseconds> durations);

  const ReplicaGraph* graph_;
  std::vector<Index> sequence_;
  std::vector<Index> row_;            ///< per pass: its place in the given sequence
  std::vector<std::uint64_t> place_;  ///< per pass: where it should stand
  Index first_ = 0;                   ///< only the rows [first_, last_) may change
  Index last_ = 0;
  std::vector<Index> missing_;             ///< per pass: inputs from these rows
  std::vector<std::vector<Index>> moved_;  ///< per rank: passes of the group that moves
  std::vector<std::vector<Index>> fixed_;  ///< per rank: those of the target
  PassClock clock_;
  std::vector<Filling> filling_;  ///< per rank
  std::vector<Index> given_;      ///< sequence that W are placed in
};

}  // namespace dipsim::dip
