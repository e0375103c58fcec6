// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <span>
#include <vector>

namespace dipsim::dip {

/// Between which positions of its rank's order the bytes of a pair are away; `freed` kNone: they
/// stay.
struct Window {
  Index freed = ReplicaGraph::kNone;
  Index fetched = ReplicaGraph::kNone;

  [[nodiscard]] bool away() const { return freed != ReplicaGraph::kNone; }

  friend bool operator==(const Window&, const Window&) = default;
};

/// How a pair can offload.
struct Variant {
  bool exists = false;
  Index strategy = 0;  ///< row among the allowed strategies of the pair
  Index twin = 0;      ///< row of the option that keeps on the GPU what this one copies
  Nanoseconds out = 0;
  Nanoseconds in = 0;
  ByteCount away = 0;
};

/// Times an order in which some pairs offload, as the order evaluator does
/// (sim/graph/order_evaluator.cpp): copies out queue in the order of their forwards, copies in by
/// the passes that they follow, those behind one pass by their backwards.
class OffloadTimer {
 public:
  /// All must outlive the timer. `sequence`: all passes, following precedence.
  OffloadTimer(const ReplicaGraph& replica, std::span<const Index> sequence,
               std::span<const Variant> variants);

  /// Positions of the passes on their ranks, and the passes in the order of a rank.
  [[nodiscard]] Index position(Index pass) const { return position_[pass]; }

  [[nodiscard]] std::span<const Index> order(Index rank) const { return order_[rank]; }

  /// Makespan at these durations, one per pass, with these windows, one per pair.
  Nanoseconds time(std::span<const Nanoseconds> durations, std::span<const Window> windows);

  /// Of the last call.
  [[nodiscard]] Nanoseconds start(Index pass) const { return start_[pass]; }

  [[nodiscard]] Nanoseconds end(Index pass) const { return end_[pass]; }

  /// Pairs that offload, rank by rank in the order of their copies in.
  [[nodiscard]] std::vector<Index> by_fetch(std::span<const Window> windows) const;

 private:
  const ReplicaGraph* graph_;
  std::span<const Index> sequence_;
  std::span<const Variant> variants_;
  std::vector<Index> position_;
  std::vector<std::vector<Index>> order_;  ///< per rank
  PassClock clock_;
  std::vector<Nanoseconds> start_;
  std::vector<Nanoseconds> end_;
  std::vector<Nanoseconds> out_free_;  ///< per rank
  std::vector<Nanoseconds> in_free_;
  std::vector<Index> first_fetch_;  ///< per pass: the first pair fetched after it, or kNone
  std::vector<Index> next_fetch_;   ///< per pair: the next one behind the same pass, or kNone
};

}  // namespace dipsim::dip
