// SPDX-License-Identifier: Apache-2.0
// One run of the engine. Private to sim/engine; engine.hpp is its face.
#pragma once

#include "sim/engine/contention.hpp"
#include "sim/engine/lane_queues.hpp"
#include "sim/graph/adjacency.hpp"
#include "sim/graph/deadlock.hpp"
#include "sim/graph/engine_options.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace dipsim {

/// At one instant, first everything that ends, in the order in which it was started; then tasks
/// that queue for a lane, by id.
enum class Phase : std::uint8_t { End, Queue };

struct Event {
  Time at;
  Phase phase;
  std::uint32_t sequence;  ///< Queue: the task's id; End: of the start of the task
  TaskId task;

  friend bool operator>(const Event& a, const Event& b) {
    if (a.at != b.at) {
      return a.at > b.at;
    }
    return a.phase != b.phase ? a.phase > b.phase : a.sequence > b.sequence;
  }
};

/// What is no pass is Started when it queues for its lanes; a transfer is Underway when it has left
/// its link and has not arrived.
enum class Progress : std::uint8_t { Waiting, Started, Underway, Ended };

/// The state of one run and the rules that change it.
class EngineRun {
 public:
  /// `network`: none, nothing is shared. All arguments outlive the run.
  EngineRun(const TaskGraph& graph, const Schedule& schedule, const EngineOptions& options,
            const FlowNetwork* network);

  /// Once. Throws Input on a deadlock.
  Timeline run();

 private:
  // engine.cpp: the loop over events.

  /// For every pass the transfers that it waits for, by pass.
  [[nodiscard]] std::vector<std::vector<TaskId>> incoming_transfers() const;
  void start_task(TaskId task);
  /// The task is over at `end`, or has left its link then, unless it is re-timed before that.
  void expect_end(TaskId task, Time end);
  /// When all changes of an instant have been made, times what they slow down or speed up.
  void settle_before_next(Time now);
  void reach_end(TaskId task, Time now);
  void end(TaskId task, Time now);
  void become_ready(TaskId id, Time now);

  // compute.cpp: passes on their cells.

  /// The slot of `task` at the head of `cell` gives way to the next one once all of it has ended.
  void leave_head(CellId cell, TaskId task, Time now);
  void reach_head(CellId cell, Time now);
  /// The receiver posts the receives of a pass, in order, when its cell reaches the pass.
  void post(TaskId pass, Time now);
  /// Starts the slot at the head of the cell when its inputs are there and it is at the head of all
  /// its cells.
  void try_start(CellId cell);
  void start(const Slot& slot, RankId rank);
  [[nodiscard]] Duration overlapped_length(const Slot& slot) const;
  /// `nominal` with this task's share of jitter: log-normal of mean 1.
  [[nodiscard]] Duration jittered(TaskId task, Duration nominal) const;

  // sends.cpp: what is no pass.

  /// Starts a transfer that has its data, once the receiver has posted and it is its turn; under a
  /// fixed order of sends also those that waited for this one.
  void try_send(TaskId id, Time now);
  [[nodiscard]] bool can_send(TaskId id) const;
  /// The transfer whose turn it is under a fixed order of sends; none when all are sent.
  [[nodiscard]] TaskId next_to_send(RankId rank) const;
  /// What is no pass runs first come first served on its lanes.
  void enter_lanes(TaskId id, Time now);
  void occupy_lanes(TaskId id, Time now);
  void leave_lanes(TaskId id, Time now);

  // waits.cpp: why nothing moves.

  /// What the tasks that have not ended wait for.
  [[nodiscard]] std::vector<WaitEdge> waits() const;
  /// Under rendezvous a transfer waits for what the receiver runs before the pass that needs it.
  void add_post_waits(TaskId before, TaskId pass, std::vector<WaitEdge>& waits) const;

  const TaskGraph& graph_;
  const Schedule& schedule_;
  const EngineOptions& options_;
  Successors successors_;
  LaneQueues lanes_;
  std::optional<Contention> contention_;
  std::vector<Span> spans_;
  std::vector<Progress> state_;
  std::vector<std::int32_t> waits_for_;  ///< predecessors that have not ended
  std::vector<Time> ready_at_;
  std::vector<std::uint32_t> sequence_;  ///< of the start of each task
  std::vector<Time> cell_free_;
  std::vector<std::int32_t> sending_;  ///< per cell: its messages that it waits for (Blocking)
  std::vector<std::uint32_t> head_;    ///< per cell: slots that have ended
  std::vector<Time> issued_;           ///< per rank: when the host has issued its latest pass
  std::vector<std::uint32_t> sent_;    ///< per rank: transfers started under a fixed order
  std::vector<Time> posted_at_;        ///< rendezvous: per transfer
  std::vector<std::vector<TaskId>> incoming_;  ///< rendezvous: transfers by receiving pass
  std::map<std::pair<TaskId, TaskId>, Duration> together_;
  std::vector<TaskId> beside_;  ///< per pass under contention: what it overlaps with
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint32_t next_sequence_ = 0;
  std::size_t done_ = 0;
};

}  // namespace dipsim
