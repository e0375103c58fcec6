// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/lane_queues.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace dipsim {

namespace {

/// Numbers for queues: first the lanes of all ranks, then one per pair of ranks that asks.
class QueueNumbers {
 public:
  explicit QueueNumbers(std::size_t ranks) : count_(ranks * kLaneCount) {}

  static std::uint32_t of_lane(RankId rank, Lane lane) {
    return static_cast<std::uint32_t>(rank.row() * kLaneCount + static_cast<std::size_t>(lane));
  }

  std::uint32_t of_pair(RankId a, RankId b) {
    const auto [known, fresh] = pairs_.try_emplace({a, b}, static_cast<std::uint32_t>(count_));
    count_ += fresh ? 1U : 0U;
    return known->second;
  }

  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::map<std::pair<RankId, RankId>, std::uint32_t> pairs_;
  std::size_t count_;
};

/// Calls add(queue) for every queue that a transfer, or a copy behind a copy engine, takes.
template <class Add>
void for_each_link_queue(const Task& task, LanePolicy policy, QueueNumbers& numbers,
                         const Add& add) {
  const bool copies = task.op != Op::Transfer;
  switch (policy) {
    case LanePolicy::PairDirection:
      add(numbers.of_pair(task.rank, task.peer));
      break;
    case LanePolicy::Pair:
      add(numbers.of_pair(std::min(task.rank, task.peer), std::max(task.rank, task.peer)));
      break;
    case LanePolicy::Rank:
      add(numbers.of_pair(task.rank, task.rank));
      break;
    case LanePolicy::CopyEngine:
      add(numbers.of_pair(task.rank, task.rank));
      if (!copies && task.peer != task.rank) {
        add(numbers.of_pair(task.peer, task.peer));
      }
      break;
  }
}

}  // namespace

LaneQueues::LaneQueues(const TaskGraph& graph, LanePolicy policy) : ahead_(graph.tasks.size(), 0) {
  QueueNumbers numbers(graph.placement.ranks.size());
  first_place_.reserve(graph.tasks.size() + 1);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    first_place_.push_back(static_cast<std::uint32_t>(queue_.size()));
    const auto add = [&](std::uint32_t queue) {
      queue_.push_back(queue);
      owner_.emplace_back(i);
    };
    const bool copies = task.op == Op::CopyOut || task.op == Op::CopyIn;
    if (task.op == Op::Transfer || (copies && policy == LanePolicy::CopyEngine)) {
      for_each_link_queue(task, policy, numbers, add);
    } else if (!is_pass(task.op)) {
      const std::span<const RankId> ranks = task.group.valid()
                                                ? graph.placement.groups[task.group.row()]
                                                : std::span<const RankId>(&task.rank, 1);
      for (const RankId rank : ranks) {
        add(QueueNumbers::of_lane(rank, task.lane));
      }
    }
  }
  first_place_.push_back(static_cast<std::uint32_t>(queue_.size()));
  behind_.assign(queue_.size(), kNobody);
  last_.assign(numbers.count(), kNobody);
}

bool LaneQueues::enter(TaskId task) {
  for (std::uint32_t place = first_place_[task.row()]; place < first_place_[task.row() + 1];
       ++place) {
    std::int32_t& last = last_[queue_[place]];
    if (last != kNobody) {
      behind_[static_cast<std::size_t>(last)] = static_cast<std::int32_t>(place);
      ++ahead_[task.row()];
    }
    last = static_cast<std::int32_t>(place);
  }
  return ahead_[task.row()] == 0;
}

}  // namespace dipsim
