// SPDX-License-Identifier: Apache-2.0
// Passes on the cells of their ranks.
#include "sim/core/random.hpp"
#include "sim/engine/run.hpp"

#include <algorithm>

namespace dipsim {

void EngineRun::leave_head(CellId cell, TaskId task, Time now) {
  const Slot& slot = schedule_.compute[cell.row()][head_[cell.row()]];
  const TaskId other = slot.task == task ? slot.together : slot.task;
  if (other.valid() && state_[other.row()] != Progress::Ended) {
    return;
  }
  ++head_[cell.row()];
  reach_head(cell, now);
}

void EngineRun::reach_head(CellId cell, Time now) {
  const auto order = schedule_.compute[cell.row()];
  if (head_[cell.row()] >= order.size()) {
    return;
  }
  if (options_.send == SendMode::Rendezvous) {
    post(order[head_[cell.row()]].task, now);
    if (order[head_[cell.row()]].together.valid()) {
      post(order[head_[cell.row()]].together, now);
    }
  }
  try_start(cell);
}

void EngineRun::post(TaskId pass, Time now) {
  for (const TaskId transfer : incoming_[pass.row()]) {
    if (posted_at_[transfer.row()] == Time::max()) {
      posted_at_[transfer.row()] = now;
      try_send(transfer, now);
    }
  }
}

void EngineRun::try_start(CellId cell) {
  const auto order = schedule_.compute[cell.row()];
  if (head_[cell.row()] >= order.size()) {
    return;
  }
  const Slot& slot = order[head_[cell.row()]];
  if (waits_for_[slot.task.row()] != 0 ||
      (slot.together.valid() && waits_for_[slot.together.row()] != 0)) {
    return;
  }
  const RankId rank = graph_.task(slot.task).rank;
  for (const CellId other : graph_.rank(rank).cells) {
    if (sending_[other.row()] > 0) {
      return;
    }
    const auto its_order = schedule_.compute[other.row()];
    if (head_[other.row()] >= its_order.size() || its_order[head_[other.row()]].task != slot.task) {
      return;
    }
  }
  if (state_[slot.task.row()] == Progress::Waiting) {
    start(slot, rank);
  }
}

void EngineRun::start(const Slot& slot, RankId rank) {
  Time at = ready_at_[slot.task.row()];
  Duration length = duration_of(graph_, slot.task, schedule_.chosen);
  if (slot.together.valid()) {
    at = std::max(at, ready_at_[slot.together.row()]);
    length = overlapped_length(slot);
  }
  for (const CellId cell : graph_.rank(rank).cells) {
    at = std::max(at, cell_free_[cell.row()]);
  }
  if (options_.send == SendMode::Blocking) {
    at += options_.host_issue;
  } else {
    issued_[rank.row()] += options_.host_issue;
    at = std::max(at, issued_[rank.row()]);
  }
  length = jittered(slot.task, length);
  for (const TaskId task : {slot.task, slot.together}) {
    if (task.valid()) {
      start_task(task);
      spans_[task.row()].start = at;
    }
  }
  if (contention_ && length.count() > 0) {
    beside_[slot.task.row()] = slot.together;
    contention_->begin_pass(slot.task, length, at);
    return;
  }
  expect_end(slot.task, at + length);
  if (slot.together.valid()) {
    expect_end(slot.together, at + length);
  }
}

Duration EngineRun::overlapped_length(const Slot& slot) const {
  const Duration together = together_.at({slot.task, slot.together});  // validate() saw to it
  return at_speed(graph_, graph_.task(slot.task), together);
}

Duration EngineRun::jittered(TaskId task, Duration nominal) const {
  if (options_.jitter == 0.0 || nominal.count() == 0) {
    return nominal;
  }
  RandomStream stream(options_.seed, "engine jitter", task.row());
  const double factor =
      stream.log_normal(-0.5 * options_.jitter * options_.jitter, options_.jitter);
  return round_to_duration(to_seconds(nominal) * factor, "jittered duration");
}

}  // namespace dipsim
