// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/bound.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/adjacency.hpp"
#include "sim/graph/deadlock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace dipsim {

namespace {

/// Least time of a task under any allowed strategy; a transfer counts until arrival.
Duration least_time(const TaskGraph& graph, const Task& task) {
  if (task.op == Op::Transfer) {
    return task.fixed + task.latency;
  }
  Duration nominal = task.fixed;
  if (task.pair.valid()) {
    Duration least = Duration::max();
    for (const Strategy& strategy : graph.allowed(graph.pair(task.pair))) {
      least = std::min(least, time_of(strategy, task.op));
    }
    nominal += least;
  }
  return at_speed(graph, task, nominal);
}

Duration together_at_speed(const TaskGraph& graph, const Overlap& overlap) {
  return at_speed(graph, graph.task(overlap.f), overlap.together);
}

std::vector<Duration> least_times(const TaskGraph& graph) {
  std::vector<Duration> times;
  times.reserve(graph.tasks.size());
  for (const Task& task : graph.tasks) {
    times.push_back(least_time(graph, task));
  }
  // A pass that may overlap with another can take as little as the two together.
  for (const Overlap& overlap : graph.overlaps) {
    const Duration together = together_at_speed(graph, overlap);
    times[overlap.f.row()] = std::min(times[overlap.f.row()], together);
    times[overlap.b.row()] = std::min(times[overlap.b.row()], together);
  }
  return times;
}

std::vector<TaskId> topological_order(const TaskGraph& graph, const Successors& successors) {
  const std::span<const std::int32_t> counts = successors.predecessor_counts();
  std::vector<std::int32_t> left(counts.begin(), counts.end());
  std::vector<TaskId> order;
  order.reserve(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (left[i] == 0) {
      order.emplace_back(i);
    }
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const TaskId next : successors.of(order[at])) {
      if (--left[next.row()] == 0) {
        order.push_back(next);
      }
    }
  }
  if (order.size() < graph.tasks.size()) {
    std::vector<WaitEdge> waits;
    for (const Edge& edge : graph.edges) {
      waits.push_back({edge.to, edge.from, "needs its result"});
    }
    fail_deadlock(graph, waits);
  }
  return order;
}

/// Longest paths before and after every task.
struct Paths {
  std::vector<Duration> head;  ///< least time from the start of a first pass to its own start
  std::vector<std::optional<Duration>> tail;  ///< least time after its end to the last pass;
                                              ///< none: no pass at or after it
};

Paths longest_paths(const TaskGraph& graph, std::span<const Duration> times) {
  const Successors successors(graph);
  const std::vector<TaskId> order = topological_order(graph, successors);
  Paths paths{std::vector<Duration>(graph.tasks.size(), Duration{0}),
              std::vector<std::optional<Duration>>(graph.tasks.size())};
  // The makespan starts with a pass: what comes before the first pass of a path does not count.
  std::vector<std::uint8_t> after_pass(graph.tasks.size(), 0);
  for (const TaskId task : order) {
    const bool counts = after_pass[task.row()] != 0 || is_pass(graph.task(task).op);
    const Duration end = paths.head[task.row()] + (counts ? times[task.row()] : Duration{0});
    for (const TaskId next : successors.of(task)) {
      after_pass[next.row()] |= static_cast<std::uint8_t>(counts ? 1 : 0);
    }
    for (const TaskId next : successors.of(task)) {
      paths.head[next.row()] = std::max(paths.head[next.row()], end);
    }
  }
  for (std::size_t at = order.size(); at-- > 0;) {
    const TaskId task = order[at];
    std::optional<Duration>& tail = paths.tail[task.row()];
    if (is_pass(graph.task(task).op)) {
      tail = Duration{0};
    }
    for (const TaskId next : successors.of(task)) {
      if (paths.tail[next.row()]) {
        const Duration through = times[next.row()] + *paths.tail[next.row()];
        tail = std::max(tail.value_or(Duration{0}), through);
      }
    }
  }
  return paths;
}

/// Least share of a task in the load of its cell. F and I count their least times; W what is then
/// missing to the least time that any strategy gives the whole pair, since a strategy may shift
/// time from one to the other. Not where F or I may overlap with another pass: then they take the
/// time of the two together, whatever the strategy.
Duration least_load(const TaskGraph& graph, const Task& task,
                    std::span<const std::uint8_t> overlaps) {
  const Duration least = least_time(graph, task);
  if (task.op != Op::W) {
    return least;
  }
  const Pair& pair = graph.pair(task.pair);
  if (!pair.i.valid() || overlaps[pair.f.row()] != 0 || overlaps[pair.i.row()] != 0) {
    return least;
  }
  const Task& f = graph.task(pair.f);
  const Task& i = graph.task(pair.i);
  Duration together = Duration::max();
  for (const Strategy& s : graph.allowed(pair)) {
    together =
        std::min(together, at_speed(graph, f, f.fixed + s.f) + at_speed(graph, i, i.fixed + s.i) +
                               at_speed(graph, task, task.fixed + s.w));
  }
  return std::max(least, together - least_time(graph, f) - least_time(graph, i));
}

struct CellLoad {
  Duration head = Duration::max();
  Duration load{0};
  Duration tail = Duration::max();
};

/// What overlapping may save at most: each forward overlaps once.
std::vector<Duration> overlap_savings(const TaskGraph& graph) {
  std::vector<Duration> saving(graph.tasks.size(), Duration{0});
  for (const Overlap& overlap : graph.overlaps) {
    const Duration apart =
        least_time(graph, graph.task(overlap.f)) + least_time(graph, graph.task(overlap.b));
    Duration& saved = saving[overlap.f.row()];
    saved = std::max(saved, apart - together_at_speed(graph, overlap));
  }
  return saving;
}

}  // namespace

LowerBound lower_bound(const TaskGraph& graph) {
  const std::vector<Duration> times = least_times(graph);
  const Paths paths = longest_paths(graph, times);
  const std::vector<Duration> saving = overlap_savings(graph);
  std::vector<std::uint8_t> overlaps(graph.tasks.size(), 0);
  for (const Overlap& overlap : graph.overlaps) {
    overlaps[overlap.f.row()] = 1;
    overlaps[overlap.b.row()] = 1;
  }

  LowerBound bound;
  std::vector<CellLoad> cells(graph.placement.cells.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (!is_pass(task.op)) {
      continue;
    }
    const Duration tail = paths.tail[i].value_or(Duration{0});
    bound.critical_path = std::max(bound.critical_path, paths.head[i] + times[i] + tail);
    const Duration own = least_load(graph, task, overlaps) - saving[i];
    for (const CellId cell : graph.rank(task.rank).cells) {
      CellLoad& load = cells[cell.row()];
      load.head = std::min(load.head, paths.head[i]);
      load.load += own;
      load.tail = std::min(load.tail, tail);
    }
  }
  Duration heaviest{0};
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (cells[c].head == Duration::max()) {
      continue;
    }
    const Duration through = cells[c].head + cells[c].load + cells[c].tail;
    if (!bound.cell.valid() || through > heaviest) {
      bound.cell = CellId(c);
      heaviest = through;
    }
  }
  bound.makespan = std::max(bound.critical_path, heaviest);
  return bound;
}

}  // namespace dipsim
