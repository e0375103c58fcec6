// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/engine.hpp"

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/engine/link_queues.hpp"
#include "sim/graph/adjacency.hpp"
#include "sim/graph/deadlock.hpp"
#include "sim/graph/memory.hpp"
#include "sim/graph/order_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// At one instant, first everything that ends, in the order in which it was started; then tasks
/// that queue for a lane, by id.
enum class Phase : std::uint8_t { End, Queue };

struct Event {
  Time at;
  Phase phase;
  std::uint32_t sequence;  ///< Queue: the task's id
  TaskId task;

  friend bool operator>(const Event& a, const Event& b) {
    if (a.at != b.at) {
      return a.at > b.at;
    }
    return a.phase != b.phase ? a.phase > b.phase : a.sequence > b.sequence;
  }
};

enum class Progress : std::uint8_t { Waiting, Started, Ended };

class Engine {
 public:
  Engine(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options)
      : graph_(graph),
        schedule_(schedule),
        options_(options),
        successors_(graph, offload_waits(graph, schedule)),
        links_(graph, options.lanes),
        spans_(graph.tasks.size()),
        state_(graph.tasks.size(), Progress::Waiting),
        waits_for_(successors_.predecessor_counts().begin(),
                   successors_.predecessor_counts().end()),
        ready_at_(graph.tasks.size(), kStart),
        cell_free_(graph.placement.cells.size(), kStart),
        head_(graph.placement.cells.size(), 0),
        issued_(graph.placement.ranks.size(), kStart),
        lane_free_(graph.placement.ranks.size() * kLaneCount, kStart),
        sent_(graph.placement.ranks.size(), 0) {
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

  Timeline run() {
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      if (waits_for_[i] == 0 && !is_pass(graph_.tasks[i].op)) {
        become_ready(TaskId(i), kStart);
      }
    }
    for (std::size_t cell = 0; cell < head_.size(); ++cell) {
      reach_head(CellId(cell), kStart);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.phase == Phase::Queue) {
        start_on_lane(event.task, event.at);
      } else {
        end(event.task);
      }
    }
    if (done_ < graph_.tasks.size()) {
      fail_deadlock(graph_, waits());
    }
    Timeline timeline = summarize(graph_, spans_);
    timeline.memory = memory_curves(graph_, schedule_, spans_);
    return timeline;
  }

 private:
  /// For every pass the transfers that it waits for, by pass.
  [[nodiscard]] std::vector<std::vector<TaskId>> incoming_transfers() const {
    std::vector<std::vector<TaskId>> incoming(graph_.tasks.size());
    for (const Edge& edge : graph_.edges) {
      if (graph_.task(edge.from).op == Op::Transfer && is_pass(graph_.task(edge.to).op)) {
        incoming[edge.to.row()].push_back(edge.from);
      }
    }
    return incoming;
  }

  /// `nominal` with this task's share of jitter: log-normal of mean 1.
  [[nodiscard]] Duration jittered(TaskId task, Duration nominal) const {
    if (options_.jitter == 0.0 || nominal.count() == 0) {
      return nominal;
    }
    RandomStream stream(options_.seed, "engine jitter", task.row());
    const double factor =
        stream.log_normal(-0.5 * options_.jitter * options_.jitter, options_.jitter);
    return round_to_duration(to_seconds(nominal) * factor, "jittered duration");
  }

  void schedule_end(TaskId task, Span span) {
    spans_[task.row()] = span;
    state_[task.row()] = Progress::Started;
    events_.push({span.end, Phase::End, next_sequence_++, task});
  }

  void end(TaskId task) {
    ++done_;
    state_[task.row()] = Progress::Ended;
    const Time now = spans_[task.row()].end;
    for (const TaskId next : successors_.of(task)) {
      Time& ready = ready_at_[next.row()];
      ready = std::max(ready, now);
      if (--waits_for_[next.row()] == 0) {
        become_ready(next, now);
      }
    }
    if (is_pass(graph_.task(task).op)) {
      for (const CellId cell : graph_.rank(graph_.task(task).rank).cells) {
        leave_head(cell, task, now);
      }
    }
  }

  void become_ready(TaskId id, Time now) {
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
      start_on_lane(id, now);
    } else {
      events_.push({now, Phase::Queue, static_cast<std::uint32_t>(id.row()), id});
    }
  }

  /// The slot of `task` at the head of `cell` gives way to the next one once all of it has ended.
  void leave_head(CellId cell, TaskId task, Time now) {
    const Slot& slot = schedule_.compute[cell.row()][head_[cell.row()]];
    const TaskId other = slot.task == task ? slot.together : slot.task;
    if (other.valid() && state_[other.row()] != Progress::Ended) {
      return;
    }
    ++head_[cell.row()];
    reach_head(cell, now);
  }

  void reach_head(CellId cell, Time now) {
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

  /// The receiver posts the receives of a pass, in order, when its cell reaches the pass.
  void post(TaskId pass, Time now) {
    for (const TaskId transfer : incoming_[pass.row()]) {
      if (posted_at_[transfer.row()] == Time::max()) {
        posted_at_[transfer.row()] = now;
        try_send(transfer, now);
      }
    }
  }

  /// Starts the slot at the head of the cell when its inputs are there and it is at the head of all
  /// its cells.
  void try_start(CellId cell) {
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
      const auto its_order = schedule_.compute[other.row()];
      if (head_[other.row()] >= its_order.size() ||
          its_order[head_[other.row()]].task != slot.task) {
        return;
      }
    }
    if (state_[slot.task.row()] == Progress::Waiting) {
      start(slot, rank);
    }
  }

  void start(const Slot& slot, RankId rank) {
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
    const Span span{at, at + jittered(slot.task, length)};
    for (const CellId cell : graph_.rank(rank).cells) {
      cell_free_[cell.row()] = span.end;
    }
    schedule_end(slot.task, span);
    if (slot.together.valid()) {
      schedule_end(slot.together, span);
    }
  }

  [[nodiscard]] Duration overlapped_length(const Slot& slot) const {
    const Duration together = together_.at({slot.task, slot.together});  // validate() saw to it
    return at_speed(graph_, graph_.task(slot.task), together);
  }

  /// Starts a transfer that has its data, once the receiver has posted and it is its turn; under a
  /// fixed order of sends also those that waited for this one.
  void try_send(TaskId id, Time now) {
    while (can_send(id)) {
      const Task& task = graph_.task(id);
      const Duration occupied = jittered(id, task.fixed);
      const Time start = links_.reserve(id, now, occupied);
      const Time arrival = start + occupied + task.latency;
      schedule_end(id, {start, arrival});
      if (options_.send == SendMode::Blocking) {
        for (const CellId cell : graph_.rank(task.rank).cells) {
          cell_free_[cell.row()] = std::max(cell_free_[cell.row()], arrival);
        }
      }
      if (schedule_.comm.empty()) {
        return;
      }
      ++sent_[task.rank.row()];
      id = next_to_send(task.rank);
    }
  }

  [[nodiscard]] bool can_send(TaskId id) const {
    if (!id.valid() || waits_for_[id.row()] != 0 || state_[id.row()] != Progress::Waiting) {
      return false;
    }
    if (options_.send == SendMode::Rendezvous && posted_at_[id.row()] == Time::max()) {
      return false;
    }
    return schedule_.comm.empty() || next_to_send(graph_.task(id).rank) == id;
  }

  /// The transfer whose turn it is under a fixed order of sends; none when all are sent.
  [[nodiscard]] TaskId next_to_send(RankId rank) const {
    const auto order = schedule_.comm[rank.row()];
    const std::size_t at = sent_[rank.row()];
    return at < order.size() ? order[at] : TaskId{};
  }

  /// Collectives, copies and optimizer steps: first come first served on the lanes of their ranks.
  void start_on_lane(TaskId id, Time now) {
    const Task& task = graph_.task(id);
    const Duration length = jittered(id, duration_of(graph_, id, schedule_.chosen));
    if (length.count() == 0 && (task.op == Op::CopyOut || task.op == Op::CopyIn)) {
      schedule_end(id, {now, now});  // its pair keeps its activations: there is nothing to copy
      return;
    }
    if (links_.serves(id)) {
      const Time start = links_.reserve(id, now, length);
      schedule_end(id, {start, start + length});
      return;
    }
    const std::span<const RankId> ranks = task.group.valid()
                                              ? graph_.placement.groups[task.group.row()]
                                              : std::span<const RankId>(&task.rank, 1);
    const auto lane = [&](RankId rank) -> Time& {
      return lane_free_[rank.row() * kLaneCount + static_cast<std::size_t>(task.lane)];
    };
    Time start = now;
    for (const RankId rank : ranks) {
      start = std::max(start, lane(rank));
    }
    for (const RankId rank : ranks) {
      lane(rank) = start + length;
    }
    schedule_end(id, {start, start + length});
  }

  /// What the tasks that have not ended wait for.
  [[nodiscard]] std::vector<WaitEdge> waits() const {
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

  /// Under rendezvous a transfer waits for what the receiver runs before the pass that needs it.
  void add_post_waits(TaskId before, TaskId pass, std::vector<WaitEdge>& waits) const {
    if (pass.valid()) {
      for (const TaskId transfer : incoming_[pass.row()]) {
        waits.push_back({transfer, before, "its receiver posts after it"});
      }
    }
  }

  const TaskGraph& graph_;
  const Schedule& schedule_;
  const EngineOptions& options_;
  Successors successors_;
  LinkQueues links_;
  std::vector<Span> spans_;
  std::vector<Progress> state_;
  std::vector<std::int32_t> waits_for_;  ///< predecessors that have not ended
  std::vector<Time> ready_at_;
  std::vector<Time> cell_free_;
  std::vector<std::uint32_t> head_;  ///< per cell: slots that have ended
  std::vector<Time> issued_;         ///< per rank: when the host has issued its latest pass
  std::vector<Time> lane_free_;      ///< per rank and lane, for tasks that are no passes
  std::vector<std::uint32_t> sent_;  ///< per rank: transfers started under a fixed order
  std::vector<Time> posted_at_;      ///< rendezvous: per transfer
  std::vector<std::vector<TaskId>> incoming_;  ///< rendezvous: transfers by receiving pass
  std::map<std::pair<TaskId, TaskId>, Duration> together_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint32_t next_sequence_ = 0;
  std::size_t done_ = 0;
};

void check_options(const EngineOptions& options) {
  if (options.host_issue.count() < 0) {
    fail_input("engine: host_issue", "negative");
  }
  if (!std::isfinite(options.jitter) || options.jitter < 0.0 || options.jitter > 1.0) {
    fail_input("engine: jitter", "sigma must be a number from 0 to 1");
  }
}

}  // namespace

Timeline simulate(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options) {
  check_options(options);
  validate(graph, schedule);
  if (options.send == SendMode::Blocking && !schedule.comm.empty()) {
    fail_input("engine: send",
               "blocking sends leave no choice of their order, but the schedule fixes "
               "one; allowed: eager, rendezvous");
  }
  return Engine(graph, schedule, options).run();
}

}  // namespace dipsim
