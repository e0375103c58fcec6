// SPDX-License-Identifier: Apache-2.0
// Everything that is no pass, on its lanes.
#include "sim/engine/run.hpp"

namespace dipsim {

void EngineRun::try_send(TaskId id, Time now) {
  while (can_send(id)) {
    const Task& task = graph_.task(id);
    if (options_.send == SendMode::Blocking) {
      for (const CellId cell : graph_.rank(task.rank).cells) {
        ++sending_[cell.row()];
      }
    }
    enter_lanes(id, now);
    if (schedule_.comm.empty()) {
      return;
    }
    ++sent_[task.rank.row()];
    id = next_to_send(task.rank);
  }
}

bool EngineRun::can_send(TaskId id) const {
  if (!id.valid() || waits_for_[id.row()] != 0 || state_[id.row()] != Progress::Waiting) {
    return false;
  }
  if (options_.send == SendMode::Rendezvous && posted_at_[id.row()] == Time::max()) {
    return false;
  }
  return schedule_.comm.empty() || next_to_send(graph_.task(id).rank) == id;
}

TaskId EngineRun::next_to_send(RankId rank) const {
  const auto order = schedule_.comm[rank.row()];
  const std::size_t at = sent_[rank.row()];
  return at < order.size() ? order[at] : TaskId{};
}

void EngineRun::enter_lanes(TaskId id, Time now) {
  const Task& task = graph_.task(id);
  start_task(id);
  if ((task.op == Op::CopyOut || task.op == Op::CopyIn) &&
      duration_of(graph_, id, schedule_.chosen).count() == 0) {
    state_[id.row()] = Progress::Underway;  // its pair keeps its activations: nothing to copy
    spans_[id.row()].start = now;
    expect_end(id, now);
  } else if (lanes_.enter(id)) {
    occupy_lanes(id, now);
  }
}

void EngineRun::occupy_lanes(TaskId id, Time now) {
  const Duration length = jittered(id, duration_of(graph_, id, schedule_.chosen));
  spans_[id.row()].start = now;
  if (contention_ && length.count() > 0 && contention_->shares(id)) {
    contention_->begin_flow(id, length, now);
  } else {
    expect_end(id, now + length);
  }
}

void EngineRun::leave_lanes(TaskId id, Time now) {
  if (contention_ && spans_[id.row()].start < now && contention_->shares(id)) {
    contention_->end_flow(id, now);
  }
  lanes_.leave(id, [&](TaskId next) { occupy_lanes(next, now); });
}

}  // namespace dipsim
