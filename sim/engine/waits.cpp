// SPDX-License-Identifier: Apache-2.0
// What the tasks of a run that is stuck wait for.
#include "sim/engine/run.hpp"

namespace dipsim {

std::vector<WaitEdge> EngineRun::waits() const {
  std::vector<WaitEdge> waits = schedule_waits(graph_, schedule_);
  if (options_.send == SendMode::Rendezvous) {
    for (std::size_t cell = 0; cell < head_.size(); ++cell) {
      const auto order = schedule_.compute[cell];
      for (std::size_t i = 1; i < order.size(); ++i) {
        add_post_waits(order[i - 1].task, order[i].task, waits);
        add_post_waits(order[i - 1].task, order[i].together, waits);
      }
    }
  }
  for (std::size_t rank = 0; rank < schedule_.comm.size(); ++rank) {
    const auto order = schedule_.comm[rank];
    for (std::size_t i = 1; i < order.size(); ++i) {
      waits.push_back({order[i], order[i - 1], "sent after it"});
    }
  }
  std::erase_if(waits, [&](const WaitEdge& wait) {
    return state_[wait.task.row()] == Progress::Ended ||
           state_[wait.needs.row()] == Progress::Ended;
  });
  return waits;
}

void EngineRun::add_post_waits(TaskId before, TaskId pass, std::vector<WaitEdge>& waits) const {
  if (pass.valid()) {
    for (const TaskId transfer : incoming_[pass.row()]) {
      waits.push_back({transfer, before, "its receiver posts after it"});
    }
  }
}

}  // namespace dipsim
