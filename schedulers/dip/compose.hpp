// SPDX-License-Identifier: Apache-2.0
// From priorities to a schedule: rounds of interleaving and memory choice.
#pragma once

#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/interleave.hpp"
#include "schedulers/dip/memory.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/options.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// An order of all passes of a replica and the strategies of its pairs.
struct Composition {
  std::vector<Index> sequence;
  Choice choice;
  Nanoseconds makespan = 0;
};

/// Makespan of an order under strategies. Allocates what it needs: not for inner loops.
Nanoseconds makespan_of(const ReplicaGraph& replica, std::span<const Index> sequence,
                        std::span<const Index> choice);

/// How priorities become an order.
struct Way {
  std::size_t level = 0;  ///< row of the memory level that the interleaver follows
  InterleaveRule rule;
  friend bool operator==(const Way&, const Way&) = default;
};

/// Evaluates group orders of one replica, as a search does. Not thread-safe: one composer per
/// thread; no allocation after construction.
class Composer {
 public:
  /// `replica` and `options` must outlive the composer. Throws Infeasible when no memory level
  /// fits, Input when the passes wait for each other in a cycle.
  Composer(const TaskGraph& graph, const ReplicaGraph& replica, const DipOptions& options);

  /// The ways that the options name.
  [[nodiscard]] std::span<const Way> ways() const { return ways_; }

  /// Interleaves and chooses the strategies, for as many rounds as the options say, each with the
  /// pass times of the choice before, and keeps the round with the least makespan. The first round
  /// starts from the strategies of the level. The result holds until the next call.
  const Composition& compose(const GroupOrder& order, const Way& way);

  /// One round, with the pass times of `choice`.
  const Composition& compose_once(const GroupOrder& order, const Way& way,
                                  std::span<const Index> choice);

 private:
  /// One way to use the memory: order under `soft`, never beyond `hard`, starting from `choice`.
  struct Level {
    Choice choice;
    MemoryLevel soft;
    MemoryLevel hard;
  };

  void add_levels(const TaskGraph& graph);
  void add_ways();
  void run_round(const GroupOrder& order, const Way& way);

  const ReplicaGraph* replica_;
  const DipOptions* options_;
  std::vector<Level> levels_;
  std::vector<Way> ways_;
  Interleaver interleaver_;
  MemoryChooser chooser_;
  PassClock clock_;
  std::vector<Nanoseconds> durations_;
  Choice used_;                    ///< that the round in progress has interleaved with
  std::vector<Index> sequential_;  ///< in place of what can't be interleaved
  Composition round_;
  Composition best_;
};

}  // namespace dipsim::dip
