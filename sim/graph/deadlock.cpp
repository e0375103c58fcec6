// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/deadlock.hpp"

#include "sim/core/error.hpp"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/property_map/property_map.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace dipsim {

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// Component of every vertex, by Tarjan's algorithm.
std::vector<std::size_t> components(std::size_t tasks, std::span<const WaitEdge> waits) {
  using Graph = boost::compressed_sparse_row_graph<boost::directedS>;
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  ends.reserve(waits.size());
  for (const WaitEdge& wait : waits) {
    ends.emplace_back(wait.task.row(), wait.needs.row());
  }
  const Graph graph(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), tasks);
  std::vector<std::size_t> component(tasks);
  boost::strong_components(graph, boost::make_iterator_property_map(
                                      component.begin(), boost::get(boost::vertex_index, graph)));
  return component;
}

/// The shortest way along `waits` from `start` back to itself inside one component.
std::vector<WaitEdge> cycle_through(std::size_t start, std::span<const WaitEdge> waits,
                                    std::span<const std::size_t> component) {
  std::vector<std::vector<std::size_t>> out(component.size());
  for (std::size_t e = 0; e < waits.size(); ++e) {
    const std::size_t from = waits[e].task.row();
    if (component[from] == component[start] &&
        component[waits[e].needs.row()] == component[start]) {
      out[from].push_back(e);
    }
  }
  std::vector<std::size_t> reached_by(component.size(), kNone);
  std::vector<std::size_t> frontier = {start};
  for (std::size_t at = 0; at < frontier.size(); ++at) {
    for (const std::size_t e : out[frontier[at]]) {
      const std::size_t to = waits[e].needs.row();
      if (reached_by[to] == kNone) {
        reached_by[to] = e;
        frontier.push_back(to);
      }
    }
  }
  std::vector<WaitEdge> cycle;
  std::size_t at = start;
  do {
    cycle.push_back(waits[reached_by[at]]);
    at = cycle.back().task.row();
  } while (at != start);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

}  // namespace

std::vector<WaitEdge> find_cycle(std::size_t tasks, std::span<const WaitEdge> waits) {
  const std::vector<std::size_t> component = components(tasks, waits);
  const auto closes = [&](const WaitEdge& wait) {
    return component[wait.task.row()] == component[wait.needs.row()];
  };
  const auto found = std::find_if(waits.begin(), waits.end(), closes);
  if (found == waits.end()) {
    return {};
  }
  return cycle_through(found->task.row(), waits, component);
}

std::vector<WaitEdge> schedule_waits(const TaskGraph& graph, const Schedule& schedule) {
  std::vector<WaitEdge> waits;
  std::vector<TaskId> partner(graph.tasks.size());
  const auto step = [](const Slot& slot) { return std::array{slot.task, slot.together}; };
  for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
    const auto order = schedule.compute[cell];
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i].together.valid()) {
        partner[order[i].task.row()] = order[i].together;
        partner[order[i].together.row()] = order[i].task;
      }
      for (const TaskId task : step(order[i])) {
        for (const TaskId earlier : i > 0 ? step(order[i - 1]) : std::array<TaskId, 2>{}) {
          if (task.valid() && earlier.valid()) {
            waits.push_back({task, earlier, "ordered after it on its cell"});
          }
        }
      }
    }
  }
  for (const Edge& edge : graph.edges) {
    waits.push_back({edge.to, edge.from, "needs its result"});
    if (partner[edge.to.row()].valid()) {
      waits.push_back({partner[edge.to.row()], edge.from, "overlaps with a pass that needs it"});
    }
  }
  for (const Edge& wait : offload_waits(graph, schedule)) {
    const bool frees = graph.task(wait.from).op == Op::CopyOut;
    waits.push_back(
        {wait.to, wait.from, frees ? "needs the memory that it frees" : "fetched after it"});
    if (frees && partner[wait.to.row()].valid()) {
      waits.push_back({partner[wait.to.row()], wait.from, "overlaps with a pass that needs it"});
    }
  }
  return waits;
}

void fail_deadlock(const TaskGraph& graph, std::span<const WaitEdge> waits) {
  const std::vector<WaitEdge> cycle = find_cycle(graph.tasks.size(), waits);
  DIPSIM_CHECK(!cycle.empty(), "tasks are left but no cycle among their waits");
  constexpr std::size_t kMostPrinted = 12;
  std::string text = fmt::format("deadlock, a cycle of {} waits: ", cycle.size());
  for (std::size_t i = 0; i < std::min(cycle.size(), kMostPrinted); ++i) {
    text +=
        fmt::format("{}{} waits for {} ({})", i == 0 ? "" : "; ", describe(graph, cycle[i].task),
                    describe(graph, cycle[i].needs), cycle[i].reason);
  }
  if (cycle.size() > kMostPrinted) {
    text += fmt::format("; … {} more", cycle.size() - kMostPrinted);
  }
  fail_input("schedule", text);
}

}  // namespace dipsim
