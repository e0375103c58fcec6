// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/memory_contents.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace dipsim {

namespace {

/// Of each task's `transient`, the bytes that gathers and scatters put there: a pass holds what is
/// gathered for it and for the next one, and the gradients that are scattered behind it and behind
/// the one before (docs/model.md, 19b).
std::vector<Bytes> gathered_bytes(const TaskGraph& graph, const Schedule& schedule) {
  std::vector<Bytes> bytes(graph.tasks.size());
  if (std::ranges::none_of(
          graph.tasks, [](const Task& t) { return t.op == Op::Gather || t.op == Op::Scatter; })) {
    return bytes;
  }
  std::vector<TaskId> before(graph.tasks.size());
  std::vector<TaskId> after(graph.tasks.size());
  for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
    TaskId last;
    for (const Slot& slot : schedule.compute[cell]) {
      before[slot.task.row()] = last;
      if (last.valid()) {
        after[last.row()] = slot.task;
      }
      last = slot.task;
    }
  }
  const auto add = [&](TaskId pass, TaskId neighbour, Bytes each) {
    bytes[pass.row()] += each;
    if (neighbour.valid()) {
      bytes[neighbour.row()] += each;
    }
  };
  for (const Edge& edge : graph.edges) {
    const Task& from = graph.task(edge.from);
    const Task& to = graph.task(edge.to);
    if (from.op == Op::Gather && is_pass(to.op)) {
      add(edge.to, before[edge.to.row()], from.bytes);
    } else if (to.op == Op::Scatter && is_pass(from.op)) {
      add(edge.from, after[edge.from.row()], to.bytes);
    }
  }
  return bytes;
}

/// Adds up what is there at the instant of each rank.
class Contents {
 public:
  Contents(const TaskGraph& graph, std::span<const Span> spans, std::span<const Time> at)
      : graph_(graph), spans_(spans), at_(at), of_rank_(graph.placement.ranks.size()) {}

  void add_static() {
    std::vector<std::set<int>> seen(of_rank_.size());
    for (const Chunk& chunk : graph_.placement.chunks) {
      if (seen[chunk.rank.row()].insert(chunk.weight_set).second) {
        MemoryContents& of = of_rank_[chunk.rank.row()];
        of.weights += chunk.weights;
        of.gradients += chunk.gradients;
        of.optimizer += chunk.optimizer;
      }
    }
    for (std::size_t r = 0; r < of_rank_.size(); ++r) {
      of_rank_[r].reserved = graph_.placement.ranks[r].reserved;
    }
  }

  /// The rules of memory_curves().
  void add_pair(const Pair& pair, const Strategy& strategy) {
    const RankId rank = graph_.task(pair.f).rank;
    const Span f = span(pair.f);
    const TaskId backward = pair.b.valid() ? pair.b : pair.i;
    if (!backward.valid()) {
      hold(rank, f.start, pair.w.valid() ? span(pair.w).end : f.end, strategy.f_to_i,
           &MemoryContents::activations);
      return;
    }
    const Span b = span(backward);
    hold(rank, f.start, b.end, strategy.f_to_i, &MemoryContents::activations);
    hold(rank, b.start, b.end, strategy.rebuilt, &MemoryContents::rebuilt);
    if (pair.w.valid()) {
      hold(rank, b.end, span(pair.w).end, strategy.i_to_w, &MemoryContents::kept_for_w);
    }
    if (pair.copy_out.valid() && pair.copy_in.valid()) {
      hold(rank, span(pair.copy_out).end, span(pair.copy_in).start, -strategy.offload,
           &MemoryContents::activations);
    }
  }

  void add_transients(const Schedule& schedule) {
    const std::vector<Bytes> gathered = gathered_bytes(graph_, schedule);
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      const Bytes of_weights = std::min(gathered[i], task.transient);
      hold(task.rank, spans_[i].start, spans_[i].end, of_weights, &MemoryContents::gathered);
      hold(task.rank, spans_[i].start, spans_[i].end, task.transient - of_weights,
           &MemoryContents::scratch);
    }
  }

  std::vector<MemoryContents> finish() { return std::move(of_rank_); }

 private:
  [[nodiscard]] Span span(TaskId task) const { return spans_[task.row()]; }

  void hold(RankId rank, Time from, Time to, Bytes bytes, Bytes MemoryContents::* part) {
    const Time at = at_[rank.row()];
    if (from <= at && at < to) {
      of_rank_[rank.row()].*part += bytes;
    }
  }

  const TaskGraph& graph_;
  std::span<const Span> spans_;
  std::span<const Time> at_;
  std::vector<MemoryContents> of_rank_;
};

/// When the phases of one rank change.
struct Bounds {
  Time first_start = Time::max();
  Time first_backward = Time::max();
  Time last_forward = kStart;
  Time last_end = kStart;

  /// [from, to) of a phase; empty where from >= to.
  [[nodiscard]] std::pair<Time, Time> of(MemoryPhase phase) const {
    const Time warm = std::min(first_backward, last_end);
    const Time cool = std::max(warm, std::min(last_forward, last_end));
    switch (phase) {
      case MemoryPhase::Static:
        return {kStart, first_start};
      case MemoryPhase::WarmUp:
        return {first_start, warm};
      case MemoryPhase::Steady:
        return {warm, cool};
      case MemoryPhase::CoolDown:
        return {cool, last_end};
      case MemoryPhase::Optimizer:
        break;
    }
    return {last_end, Time::max()};
  }
};

std::vector<Bounds> bounds_of(const TaskGraph& graph, std::span<const Span> spans) {
  std::vector<Bounds> bounds(graph.placement.ranks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (!is_pass(task.op)) {
      continue;
    }
    Bounds& of = bounds[task.rank.row()];
    of.first_start = std::min(of.first_start, spans[i].start);
    of.last_end = std::max(of.last_end, spans[i].end);
    if (task.op == Op::F) {
      of.last_forward = std::max(of.last_forward, spans[i].end);
    } else {
      of.first_backward = std::min(of.first_backward, spans[i].start);
    }
  }
  return bounds;
}

/// The first instant of the most that the curve reaches in [from, to).
std::optional<Time> peak_in(const MemoryCurve& curve, Time from, Time to) {
  if (from >= to) {
    return std::nullopt;
  }
  const auto next = std::ranges::upper_bound(curve.points, from, {}, &MemoryPoint::at);
  Time at = from;
  Bytes most = next == curve.points.begin() ? curve.fixed : std::prev(next)->held;
  for (auto point = next; point != curve.points.end() && point->at < to; ++point) {
    if (point->held > most) {
      most = point->held;
      at = point->at;
    }
  }
  return at;
}

}  // namespace

Bytes MemoryContents::total() const {
  Bytes sum;
  for (const MemoryPart& part : kMemoryParts) {
    sum += this->*part.member;
  }
  return sum;
}

std::vector<MemoryContents> memory_contents(const TaskGraph& graph, const Schedule& schedule,
                                            std::span<const Span> spans, std::span<const Time> at) {
  Contents contents(graph, spans, at);
  contents.add_static();
  for (std::size_t i = 0; i < graph.pairs.size(); ++i) {
    contents.add_pair(graph.pairs[i], graph.strategy(schedule.chosen[i]));
  }
  contents.add_transients(schedule);
  return contents.finish();
}

std::vector<TaskId> passes_at(const TaskGraph& graph, std::span<const Span> spans,
                              std::span<const Time> at) {
  std::vector<TaskId> passes(graph.placement.ranks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const std::size_t rank = graph.tasks[i].rank.row();
    if (is_pass(graph.tasks[i].op) && spans[i].start <= at[rank] && at[rank] < spans[i].end) {
      passes[rank] = TaskId{i};
    }
  }
  return passes;
}

std::vector<std::optional<Time>> phase_peaks(const TaskGraph& graph, const Timeline& timeline,
                                             MemoryPhase phase) {
  const std::vector<Bounds> bounds = bounds_of(graph, timeline.spans);
  std::vector<std::optional<Time>> peaks(bounds.size());
  for (std::size_t r = 0; r < bounds.size(); ++r) {
    const bool idle = bounds[r].first_start == Time::max();
    if (!idle || phase == MemoryPhase::Static) {
      const auto [from, to] = bounds[r].of(phase);
      // What a rank holds before its first pass is there even if that starts at once.
      peaks[r] = phase == MemoryPhase::Static ? std::optional(Time::min())
                                              : peak_in(timeline.memory[r], from, to);
    }
  }
  return peaks;
}

std::vector<std::optional<MemoryContents>> phase_contents(const TaskGraph& graph,
                                                          const Schedule& schedule,
                                                          const Timeline& timeline,
                                                          MemoryPhase phase) {
  const std::vector<std::optional<Time>> peaks = phase_peaks(graph, timeline, phase);
  std::vector<Time> at;
  at.reserve(peaks.size());
  for (const std::optional<Time>& peak : peaks) {
    at.push_back(peak.value_or(Time::min()));
  }
  const std::vector<MemoryContents> contents = memory_contents(graph, schedule, timeline.spans, at);
  std::vector<std::optional<MemoryContents>> out(peaks.size());
  for (std::size_t r = 0; r < peaks.size(); ++r) {
    out[r] = peaks[r] ? std::optional(contents[r]) : std::nullopt;
  }
  return out;
}

}  // namespace dipsim
