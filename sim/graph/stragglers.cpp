// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/stragglers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// Per replica the time from the first start of any pass to its own last end; none without passes.
std::vector<std::optional<Duration>> replica_lengths(const TaskGraph& graph,
                                                     const Timeline& timeline) {
  std::vector<std::optional<Time>> ends;
  Time first = Time::max();
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (is_pass(task.op)) {
      const auto replica = static_cast<std::size_t>(graph.rank(task.rank).replica);
      ends.resize(std::max(ends.size(), replica + 1));
      ends[replica] = std::max(ends[replica].value_or(kStart), timeline.spans[i].end);
      first = std::min(first, timeline.spans[i].start);
    }
  }
  std::vector<std::optional<Duration>> lengths(ends.size());
  for (std::size_t replica = 0; replica < ends.size(); ++replica) {
    if (ends[replica]) {
      lengths[replica] = *ends[replica] - first;
    }
  }
  return lengths;
}

/// The time of an average rank of the replica in the nominal run: `length` in all.
ReplicaTime nominal_time(const TaskGraph& graph, const Rows<Slot>& cells,
                         const TimelineAnalysis& analysis, int replica, Duration length) {
  ReplicaTime time;
  std::int64_t count = 0;
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    const auto slots = cells[cell];
    if (slots.empty() || graph.rank(graph.task(slots.front().task).rank).replica != replica) {
      continue;
    }
    ++count;
    time.work += analysis.busy[cell];
    time.transfer += analysis.idle[cell].transfer;
    time.other += analysis.idle[cell].collective + analysis.idle[cell].host;
  }
  for (Duration* part : {&time.work, &time.transfer, &time.other}) {
    *part /= std::max<std::int64_t>(1, count);
  }
  time.pipeline = length - time.work - time.transfer - time.other;
  return time;
}

}  // namespace

ReplicaTime operator-(const ReplicaTime& a, const ReplicaTime& b) {
  ReplicaTime out;
  for (const LagCause& cause : kLagCauses) {
    out.*cause.member = a.*cause.member - b.*cause.member;
  }
  return out;
}

std::optional<Straggler> find_straggler(const TaskGraph& graph, const Rows<Slot>& cells,
                                        const StragglerRuns& runs) {
  const auto actual = replica_lengths(graph, runs.actual);
  const auto steady = replica_lengths(graph, runs.steady);
  const auto nominal = replica_lengths(graph, runs.nominal);
  std::vector<std::pair<Duration, int>> by_end;
  for (std::size_t replica = 0; replica < actual.size(); ++replica) {
    if (actual[replica]) {
      by_end.emplace_back(*actual[replica], static_cast<int>(replica));
    }
  }
  if (by_end.size() < 2) {
    return std::nullopt;
  }
  std::ranges::sort(by_end);
  const auto& [end, last] = by_end.back();
  const auto& [median_end, median] = by_end[(by_end.size() - 1) / 2];
  const auto time_of = [&](int replica) {
    const auto row = static_cast<std::size_t>(replica);
    ReplicaTime time = nominal_time(graph, cells, runs.of_nominal, replica, *nominal[row]);
    time.slow_ranks = *steady[row] - *nominal[row];
    time.jitter = *actual[row] - *steady[row];
    return time;
  };
  return Straggler{.replica = last,
                   .median = median,
                   .lag = end - median_end,
                   .parts = time_of(last) - time_of(median)};
}

bool has_speeds(const TaskGraph& graph) {
  return std::ranges::any_of(graph.placement.ranks,
                             [](const Rank& rank) { return rank.speed != 1.0; });
}

TaskGraph at_full_speed(TaskGraph graph) {
  for (Rank& rank : graph.placement.ranks) {
    rank.speed = 1.0;
  }
  return graph;
}

}  // namespace dipsim
