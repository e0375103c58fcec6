// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.hpp"

#include "sim/core/error.hpp"
#include "sim/engine/run.hpp"
#include "sim/graph/memory.hpp"
#include "sim/graph/order_evaluator.hpp"

#include <algorithm>
#include <cmath>

namespace dipsim {

EngineRun::EngineRun(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options,
                     const FlowNetwork* network)
    : graph_(graph),
      schedule_(schedule),
      options_(options),
      successors_(graph, offload_waits(graph, schedule)),
      lanes_(graph, options.lanes),
      spans_(graph.tasks.size()),
      state_(graph.tasks.size(), Progress::Waiting),
      waits_for_(successors_.predecessor_counts().begin(), successors_.predecessor_counts().end()),
      ready_at_(graph.tasks.size(), kStart),
      sequence_(graph.tasks.size(), 0),
      cell_free_(graph.placement.cells.size(), kStart),
      sending_(graph.placement.cells.size(), 0),
      head_(graph.placement.cells.size(), 0),
      issued_(graph.placement.ranks.size(), kStart),
      sent_(graph.placement.ranks.size(), 0) {
  if (network != nullptr) {
    contention_.emplace(graph, *network);
    beside_.resize(graph.tasks.size());
  }
  for (const Overlap& overlap : graph.overlaps) {
    together_[{overlap.f, overlap.b}] = overlap.together;
  }
  if (options.send == SendMode::Rendezvous) {
    // What no pass receives is posted from the start.
    posted_at_.assign(graph.tasks.size(), kStart);
    incoming_ = incoming_transfers();
    for (const std::vector<TaskId>& transfers : incoming_) {
      for (const TaskId transfer : transfers) {
        posted_at_[transfer.row()] = Time::max();
      }
    }
  }
}

Timeline EngineRun::run() {
  for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
    if (waits_for_[i] == 0 && !is_pass(graph_.tasks[i].op)) {
      become_ready(TaskId(i), kStart);
    }
  }
  for (std::size_t cell = 0; cell < head_.size(); ++cell) {
    reach_head(CellId(cell), kStart);
  }
  settle_before_next(kStart);
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    if (event.phase == Phase::Queue) {
      enter_lanes(event.task, event.at);
    } else if (spans_[event.task.row()].end == event.at) {  // else it was re-timed since
      reach_end(event.task, event.at);
    }
    settle_before_next(event.at);
  }
  if (done_ < graph_.tasks.size()) {
    fail_deadlock(graph_, waits());
  }
  Timeline timeline = summarize(graph_, spans_);
  timeline.memory = memory_curves(graph_, schedule_, spans_);
  if (contention_) {
    timeline.lost = contention_->lost();
  }
  return timeline;
}

std::vector<std::vector<TaskId>> EngineRun::incoming_transfers() const {
  std::vector<std::vector<TaskId>> incoming(graph_.tasks.size());
  for (const Edge& edge : graph_.edges) {
    if (graph_.task(edge.from).op == Op::Transfer && is_pass(graph_.task(edge.to).op)) {
      incoming[edge.to.row()].push_back(edge.from);
    }
  }
  return incoming;
}

void EngineRun::start_task(TaskId task) {
  state_[task.row()] = Progress::Started;
  sequence_[task.row()] = next_sequence_++;
}

void EngineRun::expect_end(TaskId task, Time end) {
  spans_[task.row()].end = end;
  events_.push({end, Phase::End, sequence_[task.row()], task});
}

void EngineRun::settle_before_next(Time now) {
  const bool last = events_.empty() || events_.top().at > now;
  if (contention_ && last && contention_->unsettled()) {
    contention_->settle(now, [&](TaskId task, Time end) {
      expect_end(task, end);
      if (is_pass(graph_.task(task).op) && beside_[task.row()].valid()) {
        expect_end(beside_[task.row()], end);
      }
    });
  }
}

void EngineRun::reach_end(TaskId task, Time now) {
  if (state_[task.row()] == Progress::Ended) {
    return;  // re-timed to and fro, this end was expected twice
  }
  if (!is_pass(graph_.task(task).op) && state_[task.row()] == Progress::Started) {
    leave_lanes(task, now);
    state_[task.row()] = Progress::Underway;
    if (graph_.task(task).latency.count() > 0) {
      expect_end(task, now + graph_.task(task).latency);
      return;
    }
  }
  end(task, now);
}

void EngineRun::end(TaskId task, Time now) {
  ++done_;
  state_[task.row()] = Progress::Ended;
  const bool pass = is_pass(graph_.task(task).op);
  const std::vector<CellId>& cells = graph_.rank(graph_.task(task).rank).cells;
  if (pass) {
    if (contention_) {
      contention_->end_pass(task, now);
    }
    for (const CellId cell : cells) {
      cell_free_[cell.row()] = std::max(cell_free_[cell.row()], now);
    }
  }
  for (const TaskId next : successors_.of(task)) {
    Time& ready = ready_at_[next.row()];
    ready = std::max(ready, now);
    if (--waits_for_[next.row()] == 0) {
      become_ready(next, now);
    }
  }
  if (pass) {
    for (const CellId cell : cells) {
      leave_head(cell, task, now);
    }
  } else if (options_.send == SendMode::Blocking && graph_.task(task).op == Op::Transfer) {
    for (const CellId cell : cells) {
      cell_free_[cell.row()] = std::max(cell_free_[cell.row()], now);
      --sending_[cell.row()];
    }
    for (const CellId cell : cells) {
      try_start(cell);
    }
  }
}

void EngineRun::become_ready(TaskId id, Time now) {
  const Task& task = graph_.task(id);
  if (is_pass(task.op)) {
    for (const CellId cell : graph_.rank(task.rank).cells) {
      try_start(cell);
    }
  } else if (task.op == Op::Transfer) {
    try_send(id, now);
  } else if (task.op == Op::CopyOut || task.op == Op::CopyIn) {
    // Copies are issued behind the pass that they follow, so that their order on a lane is that
    // of the passes even where some take no time.
    enter_lanes(id, now);
  } else {
    events_.push({now, Phase::Queue, static_cast<std::uint32_t>(id.row()), id});
  }
}

namespace {

void check_options(const EngineOptions& options) {
  if (options.host_issue.count() < 0) {
    fail_input("engine: host_issue", "negative");
  }
  if (!std::isfinite(options.jitter) || options.jitter < 0.0 || options.jitter > 1.0) {
    fail_input("engine: jitter", "sigma must be a number from 0 to 1");
  }
}

Timeline run(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options,
             const FlowNetwork* network) {
  check_options(options);
  validate(graph, schedule);
  if (options.send == SendMode::Blocking && !schedule.comm.empty()) {
    fail_input("engine: send",
               "blocking sends leave no choice of their order, but the schedule fixes "
               "one; allowed: eager, rendezvous");
  }
  return EngineRun(graph, schedule, options, network).run();
}

}  // namespace

Timeline simulate(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options) {
  if (options.contention) {
    fail_input("engine: contention",
               "on, but there is no cluster whose links could be shared; allowed here: off");
  }
  return run(graph, schedule, options, nullptr);
}

Timeline simulate(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options,
                  const Cluster& cluster) {
  if (!options.contention) {
    return run(graph, schedule, options, nullptr);
  }
  const FlowNetwork network = build_flow_network(cluster, graph);
  return run(graph, schedule, options, &network);
}

Timeline simulate(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options,
                  const FlowNetwork& network) {
  return run(graph, schedule, options, &network);
}

}  // namespace dipsim
