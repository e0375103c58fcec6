// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/schedule.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace dipsim {

std::size_t uniform_strategy(std::span<const Strategy> allowed, RecomputeMode mode) {
  return uniform_row(allowed, mode);
}

std::vector<StrategyId> uniform_strategies(const TaskGraph& graph, RecomputeMode mode) {
  std::vector<StrategyId> chosen;
  chosen.reserve(graph.pairs.size());
  for (const Pair& pair : graph.pairs) {
    chosen.emplace_back(pair.first_strategy.row() + uniform_strategy(graph.allowed(pair), mode));
  }
  return chosen;
}

namespace {

/// How often a pass stands in the orders, and on which cell it was seen last.
struct Seen {
  std::size_t times = 0;
  CellId last{};
  TaskId partner{};  ///< runs in the same step; the same on every cell
};

void require_slot(const TaskGraph& graph, TaskId task, TaskId partner, std::size_t cell,
                  std::vector<Seen>& seen) {
  const std::string where = fmt::format("schedule: cell {}", cell);
  if (!task.valid() || task.row() >= graph.tasks.size() || !is_pass(graph.task(task).op)) {
    fail_input(where, fmt::format("task {} is no pass of this graph", task.value));
  }
  const std::vector<CellId>& cells = graph.rank(graph.task(task).rank).cells;
  if (std::find(cells.begin(), cells.end(), CellId(cell)) == cells.end()) {
    fail_input(where, describe(graph, task) + " does not run on this cell");
  }
  if (seen[task.row()].last == CellId(cell)) {
    fail_input(where, describe(graph, task) + " stands twice in the order");
  }
  if (seen[task.row()].times > 0 && seen[task.row()].partner != partner) {
    fail_input(where, describe(graph, task) + " overlaps on one cell of its rank only");
  }
  seen[task.row()].partner = partner;
  seen[task.row()].last = CellId(cell);
  ++seen[task.row()].times;
}

void require_choices(const TaskGraph& graph, const Schedule& schedule) {
  if (schedule.chosen.size() != graph.pairs.size()) {
    fail_input("schedule: /chosen",
               fmt::format("{} choices for {} pairs", schedule.chosen.size(), graph.pairs.size()));
  }
  for (std::size_t i = 0; i < graph.pairs.size(); ++i) {
    const Pair& pair = graph.pairs[i];
    const std::int32_t offset = schedule.chosen[i].value - pair.first_strategy.value;
    if (offset < 0 || offset >= pair.strategy_count) {
      fail_input(fmt::format("schedule: /chosen/{}", i),
                 fmt::format("strategy {} is not allowed; allowed: {} to {}",
                             schedule.chosen[i].value, pair.first_strategy.value,
                             pair.first_strategy.value + pair.strategy_count - 1));
    }
  }
}

using PassPair = std::pair<TaskId, TaskId>;

/// The pairs of passes that may run as one step, sorted.
std::vector<PassPair> known_overlaps(const TaskGraph& graph) {
  std::vector<PassPair> known;
  known.reserve(graph.overlaps.size());
  for (const Overlap& overlap : graph.overlaps) {
    known.emplace_back(overlap.f, overlap.b);
  }
  std::ranges::sort(known);
  return known;
}

void require_comm(const TaskGraph& graph, const Schedule& schedule) {
  const std::size_t ranks = graph.placement.ranks.size();
  if (schedule.comm.empty()) {
    return;
  }
  if (schedule.comm.size() != ranks) {
    fail_input("schedule: /comm",
               fmt::format("{} orders for {} ranks", schedule.comm.size(), ranks));
  }
  std::vector<std::uint8_t> seen(graph.tasks.size(), 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const TaskId id : schedule.comm[rank]) {
      const bool known = id.valid() && id.row() < graph.tasks.size();
      if (!known || graph.task(id).op != Op::Transfer || graph.task(id).rank != RankId(rank) ||
          seen[id.row()]++ != 0) {
        fail_input(fmt::format("schedule: /comm/{}", rank),
                   fmt::format("task {} is no transfer of this rank, or stands twice", id.value));
      }
    }
  }
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (graph.tasks[i].op == Op::Transfer && seen[i] == 0) {
      fail_input("schedule: /comm", describe(graph, TaskId(i)) + " is missing from the order");
    }
  }
}

/// Place of every pass in the order of its rank's first cell, from 1; 0: not there.
std::vector<std::size_t> places_of(const TaskGraph& graph, const Schedule& schedule) {
  std::vector<std::size_t> place(graph.tasks.size(), 0);
  for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
    std::size_t step = 0;
    for (const Slot& slot : schedule.compute[cell]) {
      ++step;
      for (const TaskId task : {slot.task, slot.together}) {
        if (task.valid() && graph.rank(graph.task(task).rank).cells.front() == CellId(cell)) {
          place[task.row()] = step;
        }
      }
    }
  }
  return place;
}

bool offloads(const TaskGraph& graph, const Schedule& schedule, std::size_t pair) {
  return graph.strategy(schedule.chosen[pair]).mode == RecomputeMode::Offload;
}

/// "offload 3: pair 7 …", the rule that its window breaks.
void require_window(const TaskGraph& graph, const OffloadWindow& window, std::size_t number,
                    std::span<const std::size_t> place) {
  const Pair& pair = graph.pair(window.pair);
  const auto require = [&](bool holds, const std::string& rule) {
    if (!holds) {
      fail_input(fmt::format("schedule: /offloads/{}", number),
                 fmt::format("pair {}: {}", window.pair.value, rule));
    }
  };
  require(pair.copy_out.valid(), "it has no copies, so it can't offload");
  const RankId rank = graph.task(pair.f).rank;
  for (const TaskId task : {window.freed_before, window.fetched_after}) {
    require(task.valid() && task.row() < graph.tasks.size() && is_pass(graph.task(task).op) &&
                graph.task(task).rank == rank,
            fmt::format("task {} is no pass of its rank {}", task.value, rank.value));
  }
  const std::size_t freed = place[window.freed_before.row()];
  const std::size_t fetched = place[window.fetched_after.row()];
  require(place[pair.f.row()] < freed, "its memory is freed before a pass behind its F");
  require(freed <= fetched, "it is fetched after a pass that does not come before freed_before");
  require(fetched < place[(pair.b.valid() ? pair.b : pair.i).row()],
          "it is fetched after a pass before its backward");
}

}  // namespace

void validate_offloads(const TaskGraph& graph, const Schedule& schedule) {
  std::vector<std::uint8_t> windows(graph.pairs.size(), 0);
  const std::vector<std::size_t> place =
      schedule.offloads.empty() ? std::vector<std::size_t>{} : places_of(graph, schedule);
  for (std::size_t i = 0; i < schedule.offloads.size(); ++i) {
    const OffloadWindow& window = schedule.offloads[i];
    const bool known = window.pair.valid() && window.pair.row() < graph.pairs.size();
    if (!known || !offloads(graph, schedule, window.pair.row()) ||
        windows[window.pair.row()]++ != 0) {
      fail_input(fmt::format("schedule: /offloads/{}", i),
                 fmt::format("pair {} does not offload, or stands twice", window.pair.value));
    }
    require_window(graph, window, i, place);
  }
  for (std::size_t i = 0; i < graph.pairs.size(); ++i) {
    if (windows[i] == 0 && offloads(graph, schedule, i)) {
      fail_input("schedule: /offloads",
                 fmt::format("pair {} offloads, but it is missing here: between which passes?", i));
    }
  }
}

std::vector<Edge> offload_waits(const TaskGraph& graph, const Schedule& schedule) {
  std::vector<Edge> waits;
  waits.reserve(2 * schedule.offloads.size());
  for (const OffloadWindow& window : schedule.offloads) {
    const Pair& pair = graph.pair(window.pair);
    waits.push_back({pair.copy_out, window.freed_before});
    waits.push_back({window.fetched_after, pair.copy_in});
  }
  return waits;
}

void validate(const TaskGraph& graph, const Schedule& schedule) {
  const std::size_t cells = graph.placement.cells.size();
  if (schedule.compute.size() != cells) {
    fail_input("schedule: /compute",
               fmt::format("{} orders for {} cells", schedule.compute.size(), cells));
  }
  std::vector<Seen> seen(graph.tasks.size());
  const std::vector<PassPair> overlaps = known_overlaps(graph);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    for (const Slot& slot : schedule.compute[cell]) {
      require_slot(graph, slot.task, slot.together, cell, seen);
      if (slot.together.valid()) {
        require_slot(graph, slot.together, slot.task, cell, seen);
        if (!std::ranges::binary_search(overlaps, PassPair{slot.task, slot.together})) {
          fail_input(fmt::format("schedule: cell {}", cell),
                     fmt::format("{} and {} can't overlap", describe(graph, slot.task),
                                 describe(graph, slot.together)));
        }
      }
    }
  }
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (is_pass(task.op) && seen[i].times != graph.rank(task.rank).cells.size()) {
      fail_input("schedule", describe(graph, TaskId(i)) + " is missing from the order");
    }
  }
  require_comm(graph, schedule);
  require_choices(graph, schedule);
  validate_offloads(graph, schedule);
}

}  // namespace dipsim
