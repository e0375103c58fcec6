// SPDX-License-Identifier: Apache-2.0
// The dual-queue greedy interleaver (arXiv 2504.14145, level 2 of the schedule searcher).
#pragma once

#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "schedulers/dip/safe_state.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace dipsim::dip {

/// When the weight passes of a split backward run. Nothing waits for them: they fill idle time, in
/// the order in which their input gradients were computed.
struct WeightRule {
  /// Most that may wait on a rank: beyond, the oldest goes before any other pass.
  int backlog = std::numeric_limits<int>::max();

  /// One starts when the rank is going to idle for at least this share of its time. Below 1 it may
  /// delay what arrives meanwhile.
  double fit = 0.5;

  friend bool operator==(const WeightRule&, const WeightRule&) = default;
};

/// How far forwards run ahead, and when W run.
struct InterleaveRule {
  /// Of the room, the share that the soft level may fill. Below 1, forwards run less far ahead.
  double soft_share = 1.0;

  /// A microbatch (component) begins only where all that its forwards hold at the soft level has
  /// room beside those that have begun.
  bool whole_microbatches = false;

  WeightRule weights;
  friend bool operator==(const InterleaveRule&, const InterleaveRule&) = default;
};

/// Turns priorities into an order of all passes. Every rank has a queue per direction. The rules,
/// where the paper leaves room for several readings:
///  - the next rank is the one that can start a pass first: at the later of the end of its last
///    pass and the least arrival of a waiting one; the lowest index among equals;
///  - of the passes that can start then, if both directions have one, the direction opposite to
///    the last pass of the rank; inside a direction the highest priority;
///  - a forward that would push the rank over the soft level switches its forward queue off until
///    a backward frees memory; where microbatches begin as wholes, one that has begun goes before
///    one that has no room yet;
///  - weight passes: WeightRule, and where a backward would leave more behind than the hard level
///    has room for, those that wait go first.
/// No rank ever exceeds the hard level, and nothing waits for ever: forwards keep to a safe state
/// (SafeState). When the soft level has switched off everything that could run, the
/// highest-priority forward that the hard level permits runs. Not thread-safe; no allocation after
/// construction.
class Interleaver {
 public:
  /// `graph` must outlive the interleaver.
  explicit Interleaver(const ReplicaGraph& graph);

  /// Orders all passes; durations: per pass. The result holds until the next call: passes in the
  /// order in which they were placed, which follows precedence and, on each rank, is its order.
  /// Empty where not even the needs of a single microbatch, as SafeState counts them, fit (or the
  /// graph has a cycle): one after the other (sequential_order) is all that is left then.
  std::span<const Index> run(const GroupOrder& order, std::span<const Nanoseconds> durations,
                             const MemoryLevel& soft, const MemoryLevel& hard,
                             const InterleaveRule& rule = {});

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
    bool backward_off = false;
    bool weight_next = false;  ///< by the weight rule
    Index weights = 0;         ///< W that wait: weights_[weights, weights_end)
    Index weights_end = 0;
  };

  void begin(const GroupOrder& order);
  void assign_slots(const GroupOrder& order);
  void find_places();
  void release(Index pass);
  [[nodiscard]] Index earliest_rank() const;
  [[nodiscard]] Index pick(Index rank);
  [[nodiscard]] Index unblock();
  [[nodiscard]] Index earlier_allowed(Index rank, bool begun, Index best);
  [[nodiscard]] bool allowed_hard(Index rank, Index pair);
  [[nodiscard]] bool allowed(Index rank, Index pair);
  [[nodiscard]] Index allowed_slot(Index rank);
  [[nodiscard]] bool may_begin(Index component);
  [[nodiscard]] bool allowed_backward(Index rank, Index pass) const;
  [[nodiscard]] Index pick_backward(Index rank);
  Index take_weight(Index rank);
  void place(Index pass);
  void account(Index pass, Index rank);
  void switch_on_forwards();
  void update_key(Index rank);
  void add_arrival(Queue& waiting, Nanoseconds at, Index slot);
  void advance(Queue& waiting, Nanoseconds now);

  [[nodiscard]] bool arrived(const Queue& waiting, Nanoseconds now) const {
    return waiting.arrivals < waiting.arrivals_end && arrivals_[waiting.arrivals].at <= now;
  }

  void make_startable(Queue& waiting, Index slot);
  [[nodiscard]] Index best_slot(Queue& waiting) const;
  [[nodiscard]] Index next_slot(const Queue& waiting, Index slot) const;
  Index take(Queue& waiting, Index slot);

  [[nodiscard]] static Index waiting_weights(const RankState& state) {
    return state.weights_end - state.weights;
  }

  [[nodiscard]] Queue& queue(Index rank, Direction direction) {
    return queues_[2 * rank + direction];
  }

  const ReplicaGraph* graph_;
  std::vector<Index> component_size_;   ///< passes
  std::vector<Queue> empty_queues_;     ///< per rank and direction, before a run
  std::vector<RankState> first_state_;  ///< per rank, before a run

  // Of the call in progress:
  std::span<const Nanoseconds> durations_;
  const MemoryLevel* soft_ = nullptr;
  const MemoryLevel* hard_ = nullptr;
  InterleaveRule rule_;
  std::vector<ByteCount> soft_room_;  ///< per rank, less what backwards rebuild
  std::vector<ByteCount> reserved_;   ///< per rank, soft: by the microbatches that have begun
  PassClock clock_;
  std::vector<Index> sequence_;
  std::vector<Queue> queues_;
  std::vector<Index> slot_;     ///< per pass
  std::vector<Index> pass_at_;  ///< per slot
  std::vector<Index> place_;    ///< per forward: among those of all ranks, once it is known
  bool place_known_ = false;
  const GroupOrder* order_ = nullptr;
  std::vector<std::uint64_t> startable_;  ///< one bit per slot
  std::vector<Arrival> arrivals_;         ///< room for every slot
  std::vector<Index> weights_;            ///< rank by rank: W in the order of their backwards
  std::vector<Nanoseconds> key_;          ///< per rank: when it can start a pass
  std::vector<RankState> state_;
  std::vector<Index> unfinished_;  ///< per component: passes to place
  SafeState safe_;
  bool unsafe_seen_ = false;  ///< a forward has been refused for the sake of the others
};

}  // namespace dipsim::dip
