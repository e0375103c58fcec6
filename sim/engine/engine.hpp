// SPDX-License-Identifier: Apache-2.0
// The full evaluator: discrete events on compute, link and copy lanes.
#pragma once

#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

#include <cstdint>
#include <string_view>

namespace dipsim {

/// What a transfer queues behind.
enum class LanePolicy : std::uint8_t {
  PairDirection,  ///< earlier transfers from the same rank to the same peer
  Pair,           ///< earlier transfers between the two ranks, either way
  Rank,           ///< earlier transfers sent by the same rank
  CopyEngine,     ///< earlier transfers and copies that the sender or the receiver takes part in
};

/// When a transfer may start.
enum class SendMode : std::uint8_t {
  Eager,       ///< as soon as its data are there: the receiver has a buffer
  Rendezvous,  ///< when also the receiver has posted: its cell has reached the pass that needs it
};

struct EngineOptions {
  LanePolicy lanes = LanePolicy::PairDirection;
  SendMode send = SendMode::Eager;
  Duration host_issue{0};  ///< the host of a rank needs this long to issue each pass, one by one
  double jitter = 0.0;     ///< sigma of log-normal factors of mean 1 on the time of every task
  std::uint64_t seed = 0;  ///< of the jitter
};

/// Runs the schedule. Times are those of the order evaluator where both apply (eager sends queueing
/// by PairDirection, no host overhead, no jitter). Deterministic: events at one instant are handled
/// in a fixed order.
///
/// `graph` must be valid (sim/graph/task_graph.hpp). Throws Input, printing the waiting cycle, when
/// the schedule deadlocks, and on a schedule that is not valid for the graph.
Timeline simulate(const TaskGraph& graph, const Schedule& schedule,
                  const EngineOptions& options = {});

}  // namespace dipsim
