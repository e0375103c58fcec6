// SPDX-License-Identifier: Apache-2.0
// The dual-queue greedy interleaver (arXiv 2504.14145, level 2 of the schedule searcher).
#pragma once

#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Turns priorities into an order of all passes. Every rank has a queue per direction. The rules,
/// where the paper leaves room for several readings:
///  - the next rank is the one that can start a pass first: at the later of the end of its last
///    pass and the least arrival of a waiting one; the lowest index among equals;
///  - of the passes that can start then, if both directions have one, the direction opposite to
///    the last pass of the rank; inside a direction the highest priority;
///  - a forward that would push the rank over the soft level switches its forward queue off until
///    a backward frees memory.
/// Nothing deadlocks, and no rank ever exceeds the hard level: all microbatches but the leading one
/// (the unfinished one of the highest forward priority) together leave room for the largest
/// microbatch, so that the leading one can always finish (after the banker's algorithm, Dijkstra
/// 1965). When the soft level has switched off everything that could run, the highest-priority
/// forward that the hard level permits runs. Not thread-safe; no allocation after construction.
class Interleaver {
 public:
  /// `graph` must outlive the interleaver.
  explicit Interleaver(const ReplicaGraph& graph);

  /// Orders all passes; durations: per pass. `hard` must be a level that fits(). The result holds
  /// until the next call: passes in the order in which they were placed, which follows precedence
  /// and, on each rank, is its order. Throws Input when the graph has a cycle.
  std::span<const Index> run(const GroupOrder& order, std::span<const Nanoseconds> durations,
                             const MemoryLevel& soft, const MemoryLevel& hard);

  /// Makespan of the last run at its durations.
  [[nodiscard]] Nanoseconds makespan() const { return clock_.makespan(); }

 private:
  enum Direction : Index { Forward = 0, Backward = 1 };

  static constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

  /// Passes of one rank and direction whose inputs are known. They are addressed by their slot:
  /// their place in the priority order of the queue, after `first`.
  struct Queue {
    Index first = 0;  ///< slots [first, last), whole words of 64
    Index last = 0;
    Index hint = 0;       ///< no set word of startable_ lies before this one
    Index startable = 0;  ///< passes that have arrived by the rank's time: bits in startable_
    Index arrivals = 0;   ///< the others, by arrival: arrivals_[arrivals, arrivals_end)
    Index arrivals_end = 0;
  };

  struct Arrival {
    Nanoseconds at = 0;
    Index slot = 0;
  };

  struct RankState {
    ByteCount soft_held = 0;
    ByteCount hard_held = 0;
    Direction last = Backward;
    bool forward_off = false;
  };

  void begin(const GroupOrder& order);
  void assign_slots(const GroupOrder& order);
  void find_leaders(const GroupOrder& order);
  void release(Index pass);
  [[nodiscard]] Index earliest_rank() const;
  [[nodiscard]] Index pick(Index rank);
  [[nodiscard]] Index unblock();
  [[nodiscard]] bool allowed_hard(Index rank, Index pair) const;
  [[nodiscard]] bool allowed(Index rank, Index pair) const;
  void place(Index pass);
  void account(Index pass, Index rank);
  void next_leader();
  void update_key(Index rank);
  void add_arrival(Queue& waiting, Nanoseconds at, Index slot);
  void advance(Queue& waiting, Nanoseconds now);
  void make_startable(Queue& waiting, Index slot);
  [[nodiscard]] Index best_slot(Queue& waiting) const;
  [[nodiscard]] Index next_slot(const Queue& waiting, Index slot) const;
  Index take(Queue& waiting, Index slot);

  [[nodiscard]] Queue& queue(Index rank, Direction direction) {
    return queues_[2 * rank + direction];
  }

  const ReplicaGraph* graph_;
  std::vector<Index> group_component_;        ///< components of the groups, group by group
  std::vector<Index> group_component_first_;  ///< per group, and the end
  std::vector<Index> component_size_;         ///< passes
  std::vector<Queue> empty_queues_;           ///< per rank and direction, before a run

  // Of the call in progress:
  std::span<const Nanoseconds> durations_;
  const MemoryLevel* soft_ = nullptr;
  const MemoryLevel* hard_ = nullptr;
  PassClock clock_;
  std::vector<Index> sequence_;
  std::vector<Queue> queues_;
  std::vector<Index> slot_;      ///< per pass
  std::vector<Index> pass_at_;   ///< per slot
  std::vector<Index> priority_;  ///< per slot: place of the pass among all of its direction
  std::vector<std::uint64_t> startable_;  ///< one bit per slot
  std::vector<Arrival> arrivals_;         ///< room for every slot
  std::vector<Nanoseconds> key_;          ///< per rank: when it can start a pass
  std::vector<RankState> state_;
  std::vector<Index> leaders_;             ///< components by forward priority
  std::vector<Index> unfinished_;          ///< per component: passes to place
  std::vector<ByteCount> component_held_;  ///< per component and rank, at the hard level
  std::vector<std::uint8_t> listed_;       ///< per component: it is in leaders_
  std::size_t leader_ = 0;                 ///< in leaders_
};

}  // namespace dipsim::dip
