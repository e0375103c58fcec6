// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/engine_options.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <vector>

namespace dipsim {

/// First-come-first-served queues of all tasks that are no passes: transfers behind what the policy
/// says, everything else behind its lane of every rank that takes part. A task runs while it is the
/// first in all of its queues. Two tasks stand in the same order wherever they meet, so some task
/// is always first in all of its own.
class LaneQueues {
 public:
  LaneQueues(const TaskGraph& graph, LanePolicy policy);

  /// Puts a task at the end of its queues. True when it is the first in all of them.
  bool enter(TaskId task);

  /// Takes a task that is the first in all of its queues out of them; calls begin(TaskId) for each
  /// task that is now the first in all of its own.
  template <class Begin>
  void leave(TaskId task, const Begin& begin) {
    for (std::uint32_t place = first_place_[task.row()]; place < first_place_[task.row() + 1];
         ++place) {
      const std::int32_t next = behind_[place];
      if (next == kNobody) {
        last_[queue_[place]] = kNobody;
      } else if (--ahead_[owner_[static_cast<std::size_t>(next)].row()] == 0) {
        begin(owner_[static_cast<std::size_t>(next)]);
      }
    }
  }

 private:
  static constexpr std::int32_t kNobody = -1;

  // A place is one task in one queue; those of a task lie side by side.
  std::vector<std::uint32_t> first_place_;  ///< per task, and one past the last
  std::vector<std::uint32_t> queue_;        ///< per place
  std::vector<TaskId> owner_;               ///< per place
  std::vector<std::int32_t> behind_;        ///< per place: the next one in its queue
  std::vector<std::int32_t> last_;          ///< per queue: its last place
  std::vector<std::int32_t> ahead_;         ///< per task: queues in which it is not the first
};

}  // namespace dipsim
