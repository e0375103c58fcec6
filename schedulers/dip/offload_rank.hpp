// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/copy_lanes.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/offload_timer.hpp"
#include "schedulers/dip/pair_bytes.hpp"
#include "schedulers/dip/pair_places.hpp"
#include "schedulers/dip/range_slack.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace dipsim::dip {

/// What the pairs of a replica do: their strategies, and where they offload. A pair that does
/// keeps, in the choice, the twin of its variant.
struct Offloads {
  Choice choice;
  std::vector<Window> windows;
};

/// When passes run, one each: windows are planned on these times.
struct PlannedTimes {
  std::vector<Nanoseconds> starts;
  std::vector<Nanoseconds> ends;
};

/// Replaces recomputation by offloading on one rank at a time, within its memory and its two copy
/// lanes. Copies are hidden at the planned times; whether the whole plan gains is for the caller to
/// find out.
class RankOffloader {
 public:
  /// All must outlive the offloader. `sequence`: all passes, following precedence.
  RankOffloader(const ReplicaGraph& replica, std::span<const Index> sequence,
                const OffloadTimer& timer, std::span<const Variant> variants,
                const PlannedTimes& times);

  /// Whether a pair of the rank that could offload recomputes.
  [[nodiscard]] bool has_recomputation(Index rank, const Offloads& state) const;

  /// Of the pairs that keep all, one in `divisor` may go to host memory to make room. No pair of
  /// the rank offloads before the call.
  void offload(Index rank, std::size_t divisor, Offloads& state);

 private:
  [[nodiscard]] const PairOption& option(Index pair, Index row) const;
  [[nodiscard]] Nanoseconds spared(Index pair, Index row) const;
  [[nodiscard]] bool recomputes(Index pair) const;
  [[nodiscard]] PairPlace slots_of(Index pair) const;
  [[nodiscard]] ByteCount room_during(const Window& window) const;
  [[nodiscard]] Nanoseconds lifetime(Index pair) const;
  [[nodiscard]] Index freed_before(const PlannedCopy& copy) const;
  [[nodiscard]] Index fetched_after(const PlannedCopy& copy) const;
  [[nodiscard]] bool moves_fit() const;

  template <class Wanted, class Value>
  std::vector<Index> sorted_pairs(Index rank, Wanted wanted, Value value) const;

  void load(Index rank);
  void offload_kept(Index rank, std::size_t divisor);
  bool keep_recomputed(Index rank);
  void take_back(Index rank);
  bool try_option(Index pair, Index row);
  bool try_faster(Index pair);
  bool try_offload(Index pair);
  bool move(Index pair, Window window);
  void shift(Index pair, Window window);

  const ReplicaGraph& graph_;
  const OffloadTimer& timer_;
  std::span<const Variant> variants_;
  const PlannedTimes& times_;
  PairPlaces places_;

  // Of the rank in progress:
  Offloads* state_ = nullptr;
  RangeSlack slack_;
  CopyLane out_;
  CopyLane in_;
  std::vector<std::pair<Index, Window>> undo_;
};

}  // namespace dipsim::dip
