// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/link_queues.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace dipsim {

LinkQueues::LinkQueues(const TaskGraph& graph, LanePolicy policy) : queues_(graph.tasks.size()) {
  std::map<std::pair<RankId, RankId>, std::int32_t> ids;
  const auto queue = [&](RankId a, RankId b) {
    return ids.try_emplace({a, b}, static_cast<std::int32_t>(ids.size())).first->second;
  };
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    const bool copies = task.op == Op::CopyOut || task.op == Op::CopyIn;
    if (task.op != Op::Transfer && !(copies && policy == LanePolicy::CopyEngine)) {
      continue;
    }
    switch (policy) {
      case LanePolicy::PairDirection:
        queues_[i].first = queue(task.rank, task.peer);
        break;
      case LanePolicy::Pair:
        queues_[i].first = queue(std::min(task.rank, task.peer), std::max(task.rank, task.peer));
        break;
      case LanePolicy::Rank:
        queues_[i].first = queue(task.rank, task.rank);
        break;
      case LanePolicy::CopyEngine:
        queues_[i].first = queue(task.rank, task.rank);
        queues_[i].second = copies ? -1 : queue(task.peer, task.peer);
        break;
    }
  }
  free_.assign(ids.size(), kStart);
}

Time LinkQueues::reserve(TaskId task, Time earliest, Duration occupied) {
  const Queues queues = queues_[task.row()];
  Time& first = free_[static_cast<std::size_t>(queues.first)];
  Time& second = queues.second >= 0 ? free_[static_cast<std::size_t>(queues.second)] : first;
  const Time start = std::max({earliest, first, second});
  first = start + occupied;
  second = start + occupied;
  return start;
}

}  // namespace dipsim
