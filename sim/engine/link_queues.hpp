// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/engine/engine.hpp"

#include <cstdint>
#include <vector>

namespace dipsim {

/// First-come-first-served queues of transfers (and, behind a shared copy engine, of copies).
class LinkQueues {
 public:
  LinkQueues(const TaskGraph& graph, LanePolicy policy);

  /// True when this task queues here: every transfer, and copies behind a copy engine.
  [[nodiscard]] bool serves(TaskId task) const { return queues_[task.row()].first >= 0; }

  /// Takes the queues of the task for `occupied` from `earliest` or from when they are free on.
  /// Returns the start.
  Time reserve(TaskId task, Time earliest, Duration occupied);

 private:
  /// The one or two queues that a task takes at once; -1: none.
  struct Queues {
    std::int32_t first = -1;
    std::int32_t second = -1;
  };

  std::vector<Queues> queues_;
  std::vector<Time> free_;
};

}  // namespace dipsim
