// SPDX-License-Identifier: Apache-2.0
// The orders of all ranks at fixed pass times, with what a local search asks of them: start times,
// tails, the critical path, and moves of a pass along its rank.
#pragma once

#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace dipsim::dip {

/// A pass goes directly behind (`later`) or before another one of its rank.
struct Move {
  Index pass = 0;
  Index target = 0;
  bool later = false;
  friend bool operator==(const Move&, const Move&) = default;
};

/// A feasible order of the passes of one replica, timed as PassClock does. Not thread-safe; no
/// allocation after construction.
class PassOrder {
 public:
  /// `replica` must outlive the order.
  explicit PassOrder(const ReplicaGraph& replica);

  /// Takes over an order: all passes, following precedence; the strategies of the pairs; and times
  /// it.
  void assign(std::span<const Index> sequence, std::span<const Index> choice);

  /// Another order at the strategies that were assigned; `sequence` is not sequence().
  void reorder(std::span<const Index> sequence);

  /// All passes, following precedence and the order of every rank.
  [[nodiscard]] std::span<const Index> sequence() const { return sequence_; }

  /// Per pair, as assigned.
  [[nodiscard]] std::span<const Index> choice() const { return choice_; }

  [[nodiscard]] Nanoseconds makespan() const { return clock_.makespan(); }

  [[nodiscard]] Nanoseconds duration(Index pass) const { return duration_[pass]; }

  [[nodiscard]] std::span<const Nanoseconds> durations() const { return duration_; }

  /// Longest time from the start of the first pass to the start of this one, and from its end to
  /// the end of the last pass (transfers that queue are not counted in the tail).
  [[nodiscard]] Nanoseconds head(Index pass) const { return start_[pass]; }

  [[nodiscard]] Nanoseconds tail(Index pass) const { return tail_[pass]; }

  /// The next or previous pass of the rank, or kNone.
  [[nodiscard]] Index next(Index pass) const { return neighbour(pass, 1); }

  [[nodiscard]] Index previous(Index pass) const { return neighbour(pass, -1); }

  /// A longest path, from its last pass back to its first: pass by pass what it waited for. Among
  /// several, `salt` chooses. Valid until the next call.
  std::span<const Index> critical_path(std::uint64_t salt);

  /// By how much the order breaks the memory limits: bytes beyond the room of the rank, added up
  /// over all passes. 0 where it fits.
  [[nodiscard]] ByteCount excess() const { return excess_; }

  /// excess() after the move.
  [[nodiscard]] ByteCount excess_after(const Move& move) const;

  /// The longest path through the passes that the move shifts, with the heads and tails that the
  /// other passes have now (Balas and Vazacopoulos, Management Science 44(2), 1998, §3): nearly
  /// always a lower bound on the makespan after the move, in the time that the shift takes.
  [[nodiscard]] Nanoseconds estimate(const Move& move) const;

  /// Makes the move and times the new order. False, and nothing changes, when something between the
  /// two waits for one of them.
  bool apply(const Move& move);

 private:
  [[nodiscard]] Index neighbour(Index pass, int step) const {
    const Index place = place_[pass] + static_cast<Index>(step);  // wraps below 0
    const Index rank = graph_->passes[pass].rank;
    return place >= rank_first_[rank] && place < rank_first_[rank + 1] ? order_[place] : kNone;
  }

  [[nodiscard]] const PairOption& option(Index pass) const {
    const Index pair = graph_->passes[pass].pair;
    return graph_->options[graph_->first_option[pair] + choice_[pair]];
  }

  [[nodiscard]] bool shift_later(const Move& move, Index first, Index last);
  [[nodiscard]] bool shift_earlier(const Move& move, Index first, Index last);
  void shift_on_rank(const Move& move);
  void set_held(Index rank);
  [[nodiscard]] ByteCount beyond_room(Index pass, ByteCount held) const;
  void time_forward();
  void time_backward();

  static constexpr Index kNone = ReplicaGraph::kNone;

  const ReplicaGraph* graph_;
  PassClock clock_;
  std::vector<Index> rank_first_;    ///< per rank, and the end: its places in order_
  std::vector<Index> first_before_;  ///< per pass, and the end: its hops in before_
  std::vector<Index> before_;        ///< passes with a hop to it
  std::vector<Index> choice_;        ///< per pair
  std::vector<Nanoseconds> duration_;
  std::vector<Index> sequence_;
  std::vector<Index> in_sequence_;  ///< per pass: its place in sequence_
  std::vector<Index> order_;        ///< rank by rank
  std::vector<Index> place_;        ///< per pass: its place in order_
  std::vector<ByteCount> held_;     ///< per place: bytes held before its pass
  std::vector<ByteCount> beyond_;   ///< per place: bytes beyond the room while its pass runs
  ByteCount excess_ = 0;            ///< their sum
  std::vector<Nanoseconds> start_;
  std::vector<Nanoseconds> tail_;
  std::vector<Nanoseconds> hop_tail_;   ///< the part of the tail that its hops give
  std::vector<Index> waited_for_;       ///< per pass: whose end its last input goes back to
  std::vector<Index> link_busy_since_;  ///< per link: the pass whose end began its busy time
  std::vector<Nanoseconds> rank_tail_;  ///< per rank: tail of its next pass, that pass included
  std::vector<Index> path_;
  std::vector<Index> moved_;          ///< part of sequence_ while it is rearranged
  std::vector<std::uint8_t> marked_;  ///< per pass
  std::vector<std::uint8_t> rank_marked_;
};

}  // namespace dipsim::dip
