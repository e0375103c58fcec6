// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/analysis.hpp"

#include <algorithm>

namespace dipsim {

namespace {

/// For every task the predecessor that ended last; none for tasks without predecessors.
std::vector<TaskId> last_inputs(const TaskGraph& graph, std::span<const Span> spans) {
  std::vector<TaskId> last(graph.tasks.size());
  for (const Edge& edge : graph.edges) {
    TaskId& known = last[edge.to.row()];
    if (!known.valid() || spans[edge.from.row()].end > spans[known.row()].end) {
      known = edge.from;
    }
  }
  return last;
}

class IdleSplit {
 public:
  IdleSplit(const TaskGraph& graph, std::span<const Span> spans)
      : graph_(graph), spans_(spans), last_input_(last_inputs(graph, spans)) {}

  /// Splits the gap [from, start of task) of a cell.
  void add_gap(IdleByCause& idle, Time from, TaskId task) const {
    const Time to = spans_[task.row()].start;
    const TaskId input = last_input_[task.row()];
    if (!input.valid()) {
      idle.host += to - from;
      return;
    }
    const bool moved = graph_.task(input).op == Op::Transfer;
    const Time pipeline_end = std::clamp(computed_at(input), from, to);
    const Time arrival = std::clamp(spans_[input.row()].end, pipeline_end, to);
    idle.pipeline += pipeline_end - from;
    (moved ? idle.transfer : idle.collective) += arrival - pipeline_end;
    idle.host += to - arrival;
  }

 private:
  /// When the last pass before or at `input` ended: a transfer's data exist from then on.
  [[nodiscard]] Time computed_at(TaskId input) const {
    if (is_pass(graph_.task(input).op)) {
      return spans_[input.row()].end;
    }
    const TaskId producer = last_input_[input.row()];
    return producer.valid() ? spans_[producer.row()].end : spans_[input.row()].start;
  }

  const TaskGraph& graph_;
  std::span<const Span> spans_;
  std::vector<TaskId> last_input_;
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

TimelineAnalysis analyze(const TaskGraph& graph, const Schedule& schedule,
                         const Timeline& timeline) {
  const std::span<const Span> spans = timeline.spans;
  const IdleSplit split(graph, spans);
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
      split.add_gap(idle, at, slot.task);
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
