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
#include <vector>

namespace dipsim::dip {

/// An order of all passes of a replica and the strategies of its pairs.
struct Composition {
  std::vector<Index> sequence;
  Choice choice;
  Nanoseconds makespan = 0;
};

/// Evaluates group orders of one replica, as a search does. Not thread-safe: one composer per
/// thread; no allocation after construction.
class Composer {
 public:
  /// `replica` and `options` must outlive the composer. Throws Infeasible when no memory level
  /// fits.
  Composer(const TaskGraph& graph, const ReplicaGraph& replica, const DipOptions& options);

  /// Memory levels that can be used.
  [[nodiscard]] std::size_t levels() const { return levels_.size(); }

  /// Interleaves at a memory level and chooses the strategies, for as many rounds as the options
  /// say, and keeps the round with the least makespan. The result holds until the next call.
  const Composition& compose(const GroupOrder& order, std::size_t level);

 private:
  /// One way to use the memory: order under `soft`, never beyond `hard`, starting from `choice`.
  struct Level {
    Choice choice;
    MemoryLevel soft;
    MemoryLevel hard;
  };

  void add_levels(const TaskGraph& graph);
  void run_round(const GroupOrder& order, const Level& use);

  const ReplicaGraph* replica_;
  const DipOptions* options_;
  std::vector<Level> levels_;
  Interleaver interleaver_;
  MemoryChooser chooser_;
  PassClock clock_;
  std::vector<Nanoseconds> durations_;
  Choice used_;  ///< that the round in progress has interleaved with
  Composition round_;
  Composition best_;
};

}  // namespace dipsim::dip
