// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace dipsim {

/// The edges of a task graph by their start, in flat arrays.
class Successors {
 public:
  /// `more`: further edges, such as the offload_waits() of a schedule.
  explicit Successors(const TaskGraph& graph, std::span<const Edge> more = {});

  /// Tasks that wait for this one, in the order of the graph's edges, then of the further ones.
  [[nodiscard]] std::span<const TaskId> of(TaskId task) const {
    return {targets_.data() + offsets_[task.row()], targets_.data() + offsets_[task.row() + 1]};
  }

  /// Number of tasks that each task waits for.
  [[nodiscard]] std::span<const std::int32_t> predecessor_counts() const { return counts_; }

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<TaskId> targets_;
  std::vector<std::int32_t> counts_;
};

}  // namespace dipsim
