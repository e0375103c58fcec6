// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/order_evaluator.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/adjacency.hpp"
#include "sim/graph/deadlock.hpp"
#include "sim/graph/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr std::int32_t kNone = -1;

bool is_copy(Op op) { return op == Op::CopyOut || op == Op::CopyIn; }

/// What happens when a pass has ended: its result reaches one further task, over a link or not.
struct Output {
  TaskId target;
  TaskId transfer;                 ///< none: same rank
  std::int32_t link = -1;          ///< queue of the transfer
  bool first_of_transfer = false;  ///< later targets of one transfer share its arrival
};

/// Tasks after the last pass, by the time at which they are ready.
struct Ready {
  Time at;
  TaskId task;

  friend bool operator>(const Ready& a, const Ready& b) {
    return std::pair(a.at, a.task) > std::pair(b.at, b.task);
  }
};

}  // namespace

struct OrderEvaluator::State {
  /// Queue of every ordered pair of ranks that exchanges something.
  using LinkIds = std::map<std::pair<RankId, RankId>, std::int32_t>;

  explicit State(const TaskGraph& task_graph);

  void add_from_start(TaskId task, const Successors& successors);
  void add_copies(const Successors& successors);
  void reset_copies(const Schedule& schedule);
  void run_copies(const Schedule& schedule, TaskId pass);
  void copy_out(const Schedule& schedule, const Pair& pair, Time from);
  void copy_in(const Schedule& schedule, const OffloadWindow& window, Time from);
  void arrive_from_host(const Pair& pair, Time at);
  void add_outputs(TaskId from, const Successors& successors, LinkIds& link_ids);
  void reset();
  void run_passes(const Schedule& schedule);
  void run_slot(const Schedule& schedule, const Slot& slot);
  bool slot_ready(const Schedule& schedule, const Slot& slot) const;
  void deliver(TaskId from);
  void arrive(TaskId target, Time at);
  void run_epilogue(const Schedule& schedule);

  const TaskGraph& graph;
  std::vector<std::uint32_t> output_offsets;
  std::vector<Output> outputs;
  std::vector<std::int32_t> predecessor_counts;
  std::vector<CellId> only_cell;  ///< per rank: its cell, where it has just one
  std::map<std::pair<TaskId, TaskId>, Duration> together;
  std::size_t links = 0;
  std::size_t passes = 0;
  std::size_t others = 0;          ///< tasks that are neither pass nor transfer
  std::vector<TaskId> from_start;  ///< of these: those that wait for nothing
  bool has_copies = false;

  std::vector<Span> spans;
  std::vector<std::int32_t> waits_for;
  std::vector<Time> ready_at;
  std::vector<Time> cell_free;
  std::vector<std::uint32_t> head;  ///< per cell: slots done
  std::vector<Time> link_free;
  std::vector<Time> lane_free;  ///< per rank and lane, for the epilogue
  std::vector<CellId> woken;
  std::size_t done = 0;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> epilogue;

  // Of graphs with copies:
  std::vector<std::int32_t> window_of;    ///< per pair: its row in Schedule::offloads, or kNone
  std::vector<std::int32_t> first_fetch;  ///< per task: the first window fetched after it, or kNone
  std::vector<std::int32_t> next_fetch;   ///< per window: the next one of the same pass, or kNone
  std::vector<Time> out_free;             ///< per rank: its device-to-host lane
  std::vector<Time> in_free;              ///< per rank: its host-to-device lane
};

OrderEvaluator::State::State(const TaskGraph& task_graph) : graph(task_graph) {
  const Successors successors(graph);
  const auto counts = successors.predecessor_counts();
  predecessor_counts.assign(counts.begin(), counts.end());
  output_offsets.reserve(graph.tasks.size() + 1);
  outputs.reserve(graph.edges.size());
  LinkIds link_ids;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    output_offsets.push_back(static_cast<std::uint32_t>(outputs.size()));
    const Task& task = graph.tasks[i];
    passes += is_pass(task.op) ? 1U : 0U;
    has_copies = has_copies || is_copy(task.op);
    if (is_copy(task.op)) {
      continue;
    }
    others += is_pass(task.op) || task.op == Op::Transfer ? 0U : 1U;
    if (!is_pass(task.op) && predecessor_counts[i] == 0) {
      add_from_start(TaskId(i), successors);
    }
    // The outputs of a transfer stand with the pass that it follows.
    if (task.op != Op::Transfer) {
      add_outputs(TaskId(i), successors, link_ids);
    }
  }
  output_offsets.push_back(static_cast<std::uint32_t>(outputs.size()));
  links = link_ids.size();
  if (has_copies) {
    add_copies(successors);
  }
  for (const Rank& rank : graph.placement.ranks) {
    only_cell.push_back(rank.cells.size() == 1 ? rank.cells.front() : CellId{});
  }
  for (const Overlap& overlap : graph.overlaps) {
    together[{overlap.f, overlap.b}] = overlap.together;
  }
}

/// A reduction or optimizer step of weights that no pass of the iteration uses: ready at once.
void OrderEvaluator::State::add_from_start(TaskId task, const Successors& successors) {
  const Op op = graph.task(task).op;
  const bool leads_to_pass = std::ranges::any_of(successors.of(task), [&](TaskId next) {
    return is_pass(graph.task(next).op) || graph.task(next).op == Op::Transfer;
  });
  if (leads_to_pass || (op != Op::Collective && op != Op::Optimizer)) {
    fail_input("order evaluator",
               describe(graph, task) + " waits for no pass; use the engine for such graphs");
  }
  from_start.push_back(task);
}

/// Copies are timed along the passes of their pair: they must stand between these and nowhere else.
void OrderEvaluator::State::add_copies(const Successors& successors) {
  for (const Pair& pair : graph.pairs) {
    if (!pair.copy_out.valid()) {
      continue;
    }
    const auto follow = [&](TaskId copy) { return successors.of(copy); };
    const TaskId backward = pair.b.valid() ? pair.b : pair.i;
    const bool between =
        predecessor_counts[pair.copy_out.row()] == 1 &&
        predecessor_counts[pair.copy_in.row()] == 1 &&
        std::ranges::count(follow(pair.f), pair.copy_out) == 1 &&
        follow(pair.copy_out).size() == 1 && follow(pair.copy_out).front() == pair.copy_in &&
        follow(pair.copy_in).size() == 1 && follow(pair.copy_in).front() == backward;
    if (!between) {
      fail_input("order evaluator", describe(graph, pair.copy_out) +
                                        " does not lead from the F to the backward of "
                                        "its pair alone; use the engine for such graphs");
    }
  }
  window_of.resize(graph.pairs.size());
  first_fetch.resize(graph.tasks.size());
}

void OrderEvaluator::State::add_outputs(TaskId from, const Successors& successors,
                                        LinkIds& link_ids) {
  for (const TaskId next : successors.of(from)) {
    const Task& follower = graph.task(next);
    if (is_copy(follower.op) && is_pass(graph.task(from).op)) {
      continue;
    }
    if (!is_pass(graph.task(from).op) && (is_pass(follower.op) || follower.op == Op::Transfer)) {
      fail_input("order evaluator",
                 describe(graph, from) + " comes before a pass; use the engine for such graphs");
    }
    if (follower.op != Op::Transfer) {
      outputs.push_back({.target = next, .transfer = {}});
      continue;
    }
    const auto fresh = static_cast<std::int32_t>(link_ids.size());
    const std::int32_t link =
        link_ids.try_emplace({follower.rank, follower.peer}, fresh).first->second;
    const Output send{.target = {}, .transfer = next, .link = link, .first_of_transfer = true};
    if (successors.of(next).empty()) {
      outputs.push_back(send);
    }
    bool first = true;
    for (const TaskId target : successors.of(next)) {
      outputs.push_back(
          {.target = target, .transfer = next, .link = link, .first_of_transfer = first});
      first = false;
    }
  }
}

void OrderEvaluator::State::reset() {
  spans.assign(graph.tasks.size(), Span{});
  waits_for.assign(predecessor_counts.begin(), predecessor_counts.end());
  ready_at.assign(graph.tasks.size(), kStart);
  cell_free.assign(graph.placement.cells.size(), kStart);
  head.assign(graph.placement.cells.size(), 0);
  link_free.assign(links, kStart);
  woken.clear();
  done = 0;
  while (!epilogue.empty()) {  // a deadlock has left some behind
    epilogue.pop();
  }
  for (const TaskId task : from_start) {
    epilogue.push({kStart, task});
  }
}

/// Finds the windows of the schedule; whoever waits for a CopyOut has one more input.
void OrderEvaluator::State::reset_copies(const Schedule& schedule) {
  validate_offloads(graph, schedule);
  std::ranges::fill(window_of, kNone);
  std::ranges::fill(first_fetch, kNone);
  next_fetch.assign(schedule.offloads.size(), kNone);
  out_free.assign(graph.placement.ranks.size(), kStart);
  in_free.assign(graph.placement.ranks.size(), kStart);
  for (std::size_t row = schedule.offloads.size(); row-- > 0;) {
    const OffloadWindow& window = schedule.offloads[row];
    const auto number = static_cast<std::int32_t>(row);
    window_of[window.pair.row()] = number;
    next_fetch[row] = std::exchange(first_fetch[window.fetched_after.row()], number);
    ++waits_for[window.freed_before.row()];
  }
}

void OrderEvaluator::State::arrive_from_host(const Pair& pair, Time at) {
  arrive(pair.b.valid() ? pair.b : pair.i, at);
}

/// A copy takes no time where its pair keeps its activations on the GPU.
void OrderEvaluator::State::copy_out(const Schedule& schedule, const Pair& pair, Time from) {
  const std::int32_t row = window_of[graph.task(pair.f).pair.row()];
  if (row == kNone) {
    spans[pair.copy_out.row()] = {from, from};
    spans[pair.copy_in.row()] = {from, from};
    arrive_from_host(pair, from);
    return;
  }
  const Duration length = duration_of(graph, pair.copy_out, schedule.chosen);
  Time& free = out_free[graph.task(pair.f).rank.row()];
  const Time start = length.count() > 0 ? std::max(from, free) : from;
  free = std::max(free, start + length);
  spans[pair.copy_out.row()] = {start, start + length};
  arrive(schedule.offloads[static_cast<std::size_t>(row)].freed_before, start + length);
}

void OrderEvaluator::State::copy_in(const Schedule& schedule, const OffloadWindow& window,
                                    Time from) {
  const Pair& pair = graph.pair(window.pair);
  const Duration length = duration_of(graph, pair.copy_in, schedule.chosen);
  Time& free = in_free[graph.task(pair.f).rank.row()];
  const Time start = length.count() > 0 ? std::max(from, free) : from;
  free = std::max(free, start + length);
  spans[pair.copy_in.row()] = {start, start + length};
  arrive_from_host(pair, start + length);
}

/// The copies that this pass lets start. On each lane they queue in the order of the passes that
/// they follow: a copy in waits for nothing else, since freed_before, which is no later than
/// fetched_after, waited for the copy out.
void OrderEvaluator::State::run_copies(const Schedule& schedule, TaskId pass) {
  const Time end = spans[pass.row()].end;
  const Pair& pair = graph.pair(graph.task(pass).pair);
  if (pass == pair.f && pair.copy_out.valid()) {
    copy_out(schedule, pair, end);
  }
  for (std::int32_t row = first_fetch[pass.row()]; row != kNone;
       row = next_fetch[static_cast<std::size_t>(row)]) {
    copy_in(schedule, schedule.offloads[static_cast<std::size_t>(row)], end);
  }
}

/// A slot can run when its inputs are there and it is at the head of each of its cells.
bool OrderEvaluator::State::slot_ready(const Schedule& schedule, const Slot& slot) const {
  if (waits_for[slot.task.row()] != 0 ||
      (slot.together.valid() && waits_for[slot.together.row()] != 0)) {
    return false;
  }
  const RankId rank = graph.task(slot.task).rank;
  if (only_cell[rank.row()].valid()) {
    return true;
  }
  return std::ranges::all_of(graph.rank(rank).cells, [&](CellId cell) {
    const auto order = schedule.compute[cell.row()];
    return head[cell.row()] < order.size() && order[head[cell.row()]].task == slot.task;
  });
}

void OrderEvaluator::State::arrive(TaskId target, Time at) {
  Time& ready = ready_at[target.row()];
  ready = std::max(ready, at);
  if (--waits_for[target.row()] == 0) {
    const Task& task = graph.task(target);
    if (is_pass(task.op)) {
      const CellId cell = only_cell[task.rank.row()];
      woken.push_back(cell.valid() ? cell : graph.rank(task.rank).cells.front());
    } else {
      epilogue.push({ready, target});
    }
  }
}

void OrderEvaluator::State::deliver(TaskId from) {
  const Time end = spans[from.row()].end;
  Time arrival = end;
  for (std::uint32_t o = output_offsets[from.row()]; o < output_offsets[from.row() + 1]; ++o) {
    const Output& output = outputs[o];
    if (!output.transfer.valid()) {
      arrive(output.target, end);
      continue;
    }
    if (output.first_of_transfer) {
      const Task& transfer = graph.task(output.transfer);
      Time& free = link_free[static_cast<std::size_t>(output.link)];
      const Time start = std::max(end, free);
      free = start + transfer.fixed;
      arrival = free + transfer.latency;
      spans[output.transfer.row()] = {start, arrival};
    }
    if (output.target.valid()) {
      arrive(output.target, arrival);
    }
  }
}

void OrderEvaluator::State::run_slot(const Schedule& schedule, const Slot& slot) {
  const Task& task = graph.task(slot.task);
  Time start = ready_at[slot.task.row()];
  Duration length{0};
  if (slot.together.valid()) {
    start = std::max(start, ready_at[slot.together.row()]);
    const auto known = together.find({slot.task, slot.together});
    if (known == together.end()) {
      fail_input("schedule", describe(graph, slot.task) + " and " + describe(graph, slot.together) +
                                 " can't overlap");
    }
    length = at_speed(graph, task, known->second);
  } else {
    length = duration_of(graph, slot.task, schedule.chosen);
  }
  const std::vector<CellId>& cells = graph.rank(task.rank).cells;
  for (const CellId cell : cells) {
    start = std::max(start, cell_free[cell.row()]);
  }
  const Span span{start, start + length};
  for (const CellId cell : cells) {
    cell_free[cell.row()] = span.end;
    ++head[cell.row()];
    if (!only_cell[task.rank.row()].valid()) {
      woken.push_back(cell);
    }
  }
  for (const TaskId pass : {slot.task, slot.together}) {
    if (pass.valid()) {
      spans[pass.row()] = span;
      ++done;
      deliver(pass);
      if (has_copies) {
        run_copies(schedule, pass);
      }
    }
  }
}

/// Runs each cell as far as its inputs allow, and goes on with the cells that this woke. Any order
/// of the cells gives the same times: a cell's passes and the transfers behind them are in the
/// order of the cell.
void OrderEvaluator::State::run_passes(const Schedule& schedule) {
  for (std::size_t cell = schedule.compute.size(); cell-- > 0;) {
    woken.emplace_back(cell);
  }
  while (!woken.empty()) {
    const CellId cell = woken.back();
    woken.pop_back();
    const auto order = schedule.compute[cell.row()];
    while (head[cell.row()] < order.size() && slot_ready(schedule, order[head[cell.row()]])) {
      run_slot(schedule, order[head[cell.row()]]);
    }
  }
}

/// Collectives and optimizer steps, first come first served on the lanes of their ranks.
void OrderEvaluator::State::run_epilogue(const Schedule& schedule) {
  if (epilogue.empty()) {
    return;
  }
  lane_free.assign(graph.placement.ranks.size() * kLaneCount, kStart);
  while (!epilogue.empty()) {
    const TaskId id = epilogue.top().task;
    const Task& task = graph.task(id);
    Time start = epilogue.top().at;
    epilogue.pop();
    const std::span<const RankId> ranks = task.group.valid()
                                              ? graph.placement.groups[task.group.row()]
                                              : std::span<const RankId>(&task.rank, 1);
    const auto lane = [&](RankId rank) -> Time& {
      return lane_free[rank.row() * kLaneCount + static_cast<std::size_t>(task.lane)];
    };
    for (const RankId rank : ranks) {
      start = std::max(start, lane(rank));
    }
    const Time end = start + duration_of(graph, id, schedule.chosen);
    for (const RankId rank : ranks) {
      lane(rank) = end;
    }
    spans[id.row()] = {start, end};
    ++done;
    deliver(id);
  }
}

OrderEvaluator::OrderEvaluator(const TaskGraph& graph) : state_(std::make_unique<State>(graph)) {}

OrderEvaluator::~OrderEvaluator() = default;

std::span<const Span> OrderEvaluator::time(const Schedule& schedule) {
  if (!schedule.comm.empty()) {
    fail_input("order evaluator", "the schedule fixes the order of transfers; use the engine");
  }
  state_->reset();
  if (state_->has_copies) {
    state_->reset_copies(schedule);
  } else if (!schedule.offloads.empty()) {
    validate_offloads(state_->graph, schedule);
  }
  state_->run_passes(schedule);
  if (state_->done < state_->passes) {
    fail_deadlock(state_->graph, schedule_waits(state_->graph, schedule));
  }
  state_->run_epilogue(schedule);
  if (state_->done < state_->passes + state_->others) {
    fail_deadlock(state_->graph, schedule_waits(state_->graph, schedule));
  }
  return state_->spans;
}

Timeline OrderEvaluator::evaluate(const Schedule& schedule) {
  Timeline timeline = summarize(state_->graph, time(schedule));
  timeline.memory = memory_curves(state_->graph, schedule, timeline.spans);
  return timeline;
}

}  // namespace dipsim
