// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/contention.hpp"

#include <algorithm>
#include <cmath>

namespace dipsim {

Time Fluid::proceed(Time now, double rate) {
  if (now > since_) {
    left_ = std::max(0.0, left_ - static_cast<double>((now - since_).count()) * rate_);
    since_ = now;
  }
  rate_ = rate;
  return since_ + Duration(std::llround(left_ / rate));
}

Contention::Contention(const TaskGraph& graph, const FlowNetwork& network)
    : graph_(graph),
      network_(network),
      shares_(network),
      slowed_rate_(1.0 / (1.0 + network.compute_slowdown)),
      fluid_(graph.tasks.size()),
      ideal_end_(graph.tasks.size()),
      running_(graph.placement.ranks.size()),
      talks_(graph.placement.ranks.size(), 0),
      is_touched_(graph.placement.ranks.size(), 0) {}

void Contention::begin_flow(TaskId task, Duration work, Time now) {
  fluid_[task.row()] = Fluid(work, now);
  ideal_end_[task.row()] = now + work;
  shares_.start(task);
  count_talk(graph_.task(task), 1);
}

void Contention::end_flow(TaskId task, Time now) {
  lost_.flows += now - ideal_end_[task.row()];
  shares_.finish(task);
  count_talk(graph_.task(task), -1);
}

void Contention::begin_pass(TaskId pass, Duration work, Time start) {
  const RankId rank = graph_.task(pass).rank;
  fluid_[pass.row()] = Fluid(work, start);
  ideal_end_[pass.row()] = start + work;
  running_[rank.row()] = pass;
  touch(rank);
}

void Contention::end_pass(TaskId pass, Time now) {
  const RankId rank = graph_.task(pass).rank;
  if (running_[rank.row()] == pass) {
    const auto cells = static_cast<std::int64_t>(graph_.rank(rank).cells.size());
    lost_.passes += (now - ideal_end_[pass.row()]) * cells;
    running_[rank.row()] = TaskId{};
  }
}

void Contention::touch(RankId rank) {
  if (is_touched_[rank.row()] == 0) {
    is_touched_[rank.row()] = 1;
    touched_.push_back(rank);
  }
}

void Contention::count_talk(const Task& task, int change) {
  const auto count = [&](RankId rank) {
    talks_[rank.row()] += change;
    if (talks_[rank.row()] == 0 || talks_[rank.row()] == change) {
      touch(rank);
    }
  };
  if (task.op == Op::CopyOut || task.op == Op::CopyIn) {
    return;
  }
  if (task.group.valid()) {
    std::ranges::for_each(graph_.placement.groups[task.group.row()], count);
    return;
  }
  count(task.rank);
  if (task.peer.valid()) {
    count(task.peer);
  }
}

}  // namespace dipsim
