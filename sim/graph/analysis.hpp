// SPDX-License-Identifier: Apache-2.0
// Numbers about a timeline; docs/metrics.md derives each.
#pragma once

#include "sim/graph/engine_options.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/timeline.hpp"

#include <vector>

namespace dipsim {

/// Idle time of one cell (in the plain case: rank) inside the makespan, by what its next pass was
/// waiting for.
struct IdleByCause {
  Duration pipeline{0};    ///< an input was still being computed, or nothing was left to do
  Duration transfer{0};    ///< an input was computed but still on its way
  Duration collective{0};  ///< a collective or a copy had to end
  Duration host{0};        ///< all inputs were there, the host had not issued the task yet
  Duration straggler{0};   ///< its replica had ended, a slower replica had not

  IdleByCause& operator+=(const IdleByCause& other) {
    pipeline += other.pipeline;
    transfer += other.transfer;
    collective += other.collective;
    host += other.host;
    straggler += other.straggler;
    return *this;
  }

  [[nodiscard]] Duration total() const {
    return pipeline + transfer + collective + host + straggler;
  }
};

struct TimelineAnalysis {
  std::vector<Duration> busy;     ///< per cell: time with a pass running
  std::vector<IdleByCause> idle;  ///< per cell; busy + idle = makespan
  double bubble_ratio = 0.0;      ///< idle / (idle + busy), over all cells
  double bubble_overhead = 0.0;   ///< idle / busy
  double mfu = 0.0;  ///< model FLOPs / (iteration time × peak of all GPUs); 0 where unknown
};

/// `send`: how the timeline came about. Under Blocking a rank that waits for its own messages to
/// arrive waits for transfers.
TimelineAnalysis analyze(const TaskGraph& graph, const Schedule& schedule, const Timeline& timeline,
                         SendMode send = SendMode::Eager);

}  // namespace dipsim
