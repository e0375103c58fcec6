// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/analysis.hpp"

#include <algorithm>

namespace dipsim {

namespace {

/// For every task what it waited for that ended last; none for tasks that wait for nothing.
std::vector<TaskId> last_inputs(const TaskGraph& graph, const Schedule& schedule,
                                std::span<const Span> spans) {
  std::vector<TaskId> last(graph.tasks.size());
  const auto count = [&](std::span<const Edge> edges) {
    for (const Edge& edge : edges) {
      TaskId& known = last[edge.to.row()];
      if (!known.valid() || spans[edge.from.row()].end > spans[known.row()].end) {
        known = edge.from;
      }
    }
  };
  count(graph.edges);
  count(offload_waits(graph, schedule));
  return last;
}

/// For every pass the time at which all cells of its rank had ended their earlier steps.
std::vector<Time> cells_free(const Schedule& schedule, std::span<const Span> spans) {
  std::vector<Time> free(spans.size(), kStart);
  for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
    Time at = kStart;
    for (const Slot& slot : schedule.compute[cell]) {
      free[slot.task.row()] = std::max(free[slot.task.row()], at);
      at = spans[slot.task.row()].end;
    }
  }
  return free;
}

class IdleSplit {
 public:
  IdleSplit(const TaskGraph& graph, const Schedule& schedule, std::span<const Span> spans,
            SendMode send)
      : graph_(graph),
        spans_(spans),
        last_input_(last_inputs(graph, schedule, spans)),
        cells_free_(cells_free(schedule, spans)),
        sends_arrived_(spans.size(), kStart) {
    if (send == SendMode::Blocking) {
      note_sends(schedule);
    }
  }

  /// Splits the gap of a cell from `from` to the start of the slot. Backwards in time: what came
  /// after the arrival of the last input is host time, each leg of its way here is transfer or
  /// collective, and before it was computed the pipeline was waiting; where the last leg is a
  /// collective that waited for another replica, so was the collective.
  void add_gap(IdleByCause& idle, Time from, const Slot& slot) const {
    const Time earliest = std::max(from, cells_free_[slot.task.row()]);
    Time open = spans_[slot.task.row()].start;
    TaskId leg = last_input_of(slot);
    const auto book = [&](Duration& cause, Time since) {
      const Time start = std::clamp(since, from, open);
      cause += open - start;
      open = start;
    };
    const Time arrived = leg.valid() ? spans_[leg.row()].end : earliest;
    book(idle.host, std::max({earliest, arrived, sends_arrived_[slot.task.row()]}));
    book(idle.transfer, std::max(earliest, arrived));
    while (leg.valid() && !is_pass(graph_.task(leg).op)) {
      const TaskId before = last_input_[leg.row()];
      const Time since = before.valid() ? spans_[before.row()].end : spans_[leg.row()].start;
      const bool moves = graph_.task(leg).op == Op::Transfer;
      book(moves ? idle.transfer : idle.collective, std::max(earliest, since));
      if (graph_.task(leg).group.valid() && before.valid() && is_foreign(before, slot)) {
        book(idle.collective, from);
      }
      leg = before;
    }
    book(idle.pipeline, from);
  }

 private:
  /// A pass of another replica than the slot's.
  [[nodiscard]] bool is_foreign(TaskId pass, const Slot& slot) const {
    const auto replica = [&](TaskId id) { return graph_.rank(graph_.task(id).rank).replica; };
    return is_pass(graph_.task(pass).op) && replica(pass) != replica(slot.task);
  }

  /// For every pass when the messages of the steps before it on its cells had arrived.
  void note_sends(const Schedule& schedule) {
    std::vector<Time> of_pass(graph_.tasks.size(), kStart);
    for (const Edge& edge : graph_.edges) {
      if (graph_.task(edge.to).op == Op::Transfer) {
        Time& known = of_pass[edge.from.row()];
        known = std::max(known, spans_[edge.to.row()].end);
      }
    }
    for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
      Time at = kStart;
      for (const Slot& slot : schedule.compute[cell]) {
        Time& known = sends_arrived_[slot.task.row()];
        known = std::max(known, at);
        at = std::max(at, of_pass[slot.task.row()]);
        at = slot.together.valid() ? std::max(at, of_pass[slot.together.row()]) : at;
      }
    }
  }

  [[nodiscard]] TaskId last_input_of(const Slot& slot) const {
    const TaskId own = last_input_[slot.task.row()];
    const TaskId other = slot.together.valid() ? last_input_[slot.together.row()] : TaskId{};
    if (!own.valid() || !other.valid()) {
      return own.valid() ? own : other;
    }
    return spans_[other.row()].end > spans_[own.row()].end ? other : own;
  }

  const TaskGraph& graph_;
  std::span<const Span> spans_;
  std::vector<TaskId> last_input_;
  std::vector<Time> cells_free_;
  std::vector<Time> sends_arrived_;  ///< per pass; Blocking only
};

/// Last end of a pass per replica.
std::vector<Time> replica_ends(const TaskGraph& graph, std::span<const Span> spans) {
  std::vector<Time> ends;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (is_pass(graph.tasks[i].op)) {
      const auto replica = static_cast<std::size_t>(graph.rank(graph.tasks[i].rank).replica);
      ends.resize(std::max(ends.size(), replica + 1), kStart);
      ends[replica] = std::max(ends[replica], spans[i].end);
    }
  }
  return ends;
}

Time first_start(const TaskGraph& graph, std::span<const Span> spans) {
  Time first = Time::max();
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (is_pass(graph.tasks[i].op)) {
      first = std::min(first, spans[i].start);
    }
  }
  return first == Time::max() ? kStart : first;
}

}  // namespace

TimelineAnalysis analyze(const TaskGraph& graph, const Schedule& schedule, const Timeline& timeline,
                         SendMode send) {
  const std::span<const Span> spans = timeline.spans;
  const IdleSplit split(graph, schedule, spans, send);
  const std::vector<Time> ends = replica_ends(graph, spans);
  const Time first = first_start(graph, spans);
  const Time last = first + timeline.makespan;

  TimelineAnalysis result;
  Duration all_busy{0};
  Duration all_idle{0};
  for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
    IdleByCause idle;
    Duration busy{0};
    Time at = first;
    Time replica_end = last;
    for (const Slot& slot : schedule.compute[cell]) {
      split.add_gap(idle, at, slot);
      at = spans[slot.task.row()].end;
      if (slot.together.valid()) {
        at = std::max(at, spans[slot.together.row()].end);
      }
      busy += at - spans[slot.task.row()].start;
      replica_end = ends[static_cast<std::size_t>(graph.rank(graph.task(slot.task).rank).replica)];
    }
    idle.pipeline += replica_end - at;
    idle.straggler += last - replica_end;
    all_busy += busy;
    all_idle += idle.total();
    result.busy.push_back(busy);
    result.idle.push_back(idle);
  }
  const auto ratio = [](Duration a, Duration b) {
    return b.count() > 0 ? static_cast<double>(a.count()) / static_cast<double>(b.count()) : 0.0;
  };
  result.bubble_ratio = ratio(all_idle, all_idle + all_busy);
  result.bubble_overhead = ratio(all_idle, all_busy);
  const double capacity = to_seconds(timeline.iteration) * graph.peak_flops_per_s;
  result.mfu = capacity > 0.0 ? graph.model_flops / capacity : 0.0;
  return result;
}

}  // namespace dipsim
