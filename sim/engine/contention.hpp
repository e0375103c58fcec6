// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/engine/flow_network.hpp"
#include "sim/engine/max_min.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

#include <cstdint>
#include <vector>

namespace dipsim {

/// Work that goes on at a rate that changes, in nanoseconds of work at rate 1.
class Fluid {
 public:
  Fluid() = default;

  Fluid(Duration work, Time start) : left_(static_cast<double>(work.count())), since_(start) {}

  /// Goes on at this rate from `now`, or from its start where that is later. Returns its end. At
  /// rate 1 throughout it ends to the nanosecond when its work is over.
  Time proceed(Time now, double rate);

  [[nodiscard]] double rate() const { return rate_; }

 private:
  double left_ = 0.0;
  double rate_ = 0.0;
  Time since_{};
};

/// What is under way and slows each other down: flows on the links that they share, and passes
/// beside the communication of their rank. Changes of one instant take effect together, at
/// settle().
class Contention {
 public:
  Contention(const TaskGraph& graph, const FlowNetwork& network);

  /// Whether the task is a flow.
  [[nodiscard]] bool shares(TaskId task) const { return network_.route[task.row()] >= 0; }

  void begin_flow(TaskId task, Duration work, Time now);
  void end_flow(TaskId task, Time now);

  /// A rank runs one pass (or one overlapped pair, under the name of its forward) at a time.
  /// `start` may lie ahead.
  void begin_pass(TaskId pass, Duration work, Time start);
  void end_pass(TaskId pass, Time now);

  [[nodiscard]] bool unsettled() const { return shares_.changed() || !touched_.empty(); }

  /// Calls retime(TaskId, Time) with the end of everything that was begun since the last call, or
  /// whose end has changed.
  template <class Retime>
  void settle(Time now, const Retime& retime) {
    shares_.refill(
        [&](TaskId flow, double rate) { retime(flow, fluid_[flow.row()].proceed(now, rate)); });
    for (const RankId rank : touched_) {
      is_touched_[rank.row()] = 0;
      const TaskId pass = running_[rank.row()];
      const double rate = talks_[rank.row()] > 0 ? slowed_rate_ : 1.0;
      if (pass.valid() && fluid_[pass.row()].rate() != rate) {
        retime(pass, fluid_[pass.row()].proceed(now, rate));
      }
    }
    touched_.clear();
  }

  [[nodiscard]] const LostTime& lost() const { return lost_; }

 private:
  void touch(RankId rank);
  /// Counts a flow on the ranks that run its kernels; copies have engines of their own.
  void count_talk(const Task& task, int change);

  const TaskGraph& graph_;
  const FlowNetwork& network_;
  MaxMinShares shares_;
  double slowed_rate_;
  std::vector<Fluid> fluid_;         ///< per task
  std::vector<Time> ideal_end_;      ///< per task under way: its end if nothing disturbed it
  std::vector<TaskId> running_;      ///< per rank: its pass
  std::vector<std::int32_t> talks_;  ///< per rank: transfers and collectives under way
  std::vector<std::uint8_t> is_touched_;
  std::vector<RankId> touched_;  ///< ranks whose pass may have to go on at another rate
  LostTime lost_;
};

}  // namespace dipsim
