// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/memory.hpp"

#include <algorithm>
#include <utility>

namespace dipsim {

namespace {

/// A step of one rank's memory. Releases sort before takes of the same instant.
struct Step {
  Time at;
  std::int64_t change;

  friend bool operator<(const Step& a, const Step& b) {
    return a.at != b.at ? a.at < b.at : a.change < b.change;
  }
};

class StepTable {
 public:
  explicit StepTable(const TaskGraph& graph) : steps_(graph.placement.ranks.size()) {
    std::vector<std::size_t> count(steps_.size(), 0);
    for (const Task& task : graph.tasks) {
      count[task.rank.row()] += is_pass(task.op) ? 2U : 0U;
    }
    for (std::size_t r = 0; r < steps_.size(); ++r) {
      steps_[r].reserve(count[r]);
    }
  }

  void change(RankId rank, Time at, Bytes bytes) {
    if (bytes.count != 0) {
      steps_[rank.row()].push_back({at, bytes.count});
    }
  }

  void hold(RankId rank, Time from, Time to, Bytes bytes) {
    if (from < to) {  // what lives for no time is never there
      change(rank, from, bytes);
      change(rank, to, -bytes);
    }
  }

  MemoryCurve curve(RankId rank, Bytes fixed) {
    std::vector<Step>& steps = steps_[rank.row()];
    std::sort(steps.begin(), steps.end());
    MemoryCurve curve{.fixed = fixed, .points = {{kStart, fixed}}, .peak = fixed};
    Bytes held = fixed;
    for (std::size_t i = 0; i < steps.size();) {
      const Time at = steps[i].at;
      for (; i < steps.size() && steps[i].at == at; ++i) {
        held += Bytes{steps[i].change};
      }
      if (at == curve.points.back().at) {
        curve.points.back().held = held;
      } else if (held != curve.points.back().held) {
        curve.points.push_back({at, held});
      }
      if (held > curve.peak) {
        curve.peak = held;
        curve.peak_at = at;
      }
    }
    std::vector<Step>().swap(steps);
    return curve;
  }

 private:
  std::vector<std::vector<Step>> steps_;
};

void add_pair(const TaskGraph& graph, const Pair& pair, const Strategy& strategy,
              std::span<const Span> spans, StepTable& steps) {
  const RankId rank = graph.task(pair.f).rank;
  const Span f = spans[pair.f.row()];
  const TaskId first_backward = pair.b.valid() ? pair.b : pair.i;
  if (!first_backward.valid()) {
    // Nothing of the backward needs its input: what F holds dies with F, unless W reads it.
    const Time end = pair.w.valid() ? spans[pair.w.row()].end : f.end;
    steps.hold(rank, f.start, end, strategy.f_to_i);
    return;
  }
  const Span backward = spans[first_backward.row()];
  steps.hold(rank, f.start, backward.end, strategy.f_to_i);
  steps.hold(rank, backward.start, backward.end, strategy.rebuilt);
  if (pair.w.valid()) {
    steps.hold(rank, backward.end, spans[pair.w.row()].end, strategy.i_to_w);
  }
  if (pair.copy_out.valid() && pair.copy_in.valid()) {
    steps.hold(rank, spans[pair.copy_out.row()].end, spans[pair.copy_in.row()].start,
               -strategy.offload);
  }
}

}  // namespace

std::vector<MemoryCurve> memory_curves(const TaskGraph& graph, const Schedule& schedule,
                                       std::span<const Span> spans) {
  StepTable steps(graph);
  for (std::size_t i = 0; i < graph.pairs.size(); ++i) {
    add_pair(graph, graph.pairs[i], graph.strategy(schedule.chosen[i]), spans, steps);
  }
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    steps.hold(task.rank, spans[i].start, spans[i].end, task.transient);
  }
  const std::vector<Bytes> fixed = static_memory(graph.placement);
  std::vector<MemoryCurve> curves;
  curves.reserve(fixed.size());
  for (std::size_t r = 0; r < fixed.size(); ++r) {
    curves.push_back(steps.curve(RankId(r), fixed[r]));
  }
  return curves;
}

std::vector<int> peak_in_flight(const TaskGraph& graph, std::span<const Span> spans) {
  std::vector<std::vector<Step>> steps(graph.placement.ranks.size());
  for (const Pair& pair : graph.pairs) {
    TaskId last = pair.f;
    for (const TaskId end : {pair.i, pair.b, pair.w}) {
      last = end.valid() ? end : last;
    }
    std::vector<Step>& of_rank = steps[graph.task(pair.f).rank.row()];
    of_rank.push_back({spans[pair.f.row()].start, 1});
    of_rank.push_back({spans[last.row()].end, -1});
  }
  std::vector<int> peaks;
  for (std::vector<Step>& of_rank : steps) {
    std::sort(of_rank.begin(), of_rank.end());
    std::int64_t held = 0;
    std::int64_t peak = 0;
    for (const Step& step : of_rank) {
      held += step.change;
      peak = std::max(peak, held);
    }
    peaks.push_back(static_cast<int>(peak));
  }
  return peaks;
}

}  // namespace dipsim
