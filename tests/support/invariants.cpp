// SPDX-License-Identifier: Apache-2.0
#include "tests/support/invariants.hpp"

#include "sim/core/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/analysis.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/memory_needs.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>

namespace dipsim::test {

namespace {

std::string broken_times(const TaskGraph& graph, const Schedule& schedule,
                         const Timeline& timeline) {
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Span span = timeline.spans[t];
    const Duration time = duration_of(graph, TaskId(t), schedule.chosen);
    if (is_pass(graph.tasks[t].op) && (span.start < kStart || span.end - span.start != time)) {
      return describe(graph, TaskId(t)) + " does not take its time";
    }
  }
  for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
    Time free = kStart;
    for (const Slot& slot : schedule.compute[cell]) {
      if (timeline.spans[slot.task.row()].start < free) {
        return describe(graph, slot.task) + " overlaps the pass before it";
      }
      free = timeline.spans[slot.task.row()].end;
    }
  }
  for (const Edge& edge : graph.edges) {
    if (timeline.spans[edge.to.row()].start < timeline.spans[edge.from.row()].end) {
      return describe(graph, edge.to) + " does not wait for " + describe(graph, edge.from);
    }
  }
  for (const Edge& wait : offload_waits(graph, schedule)) {
    if (timeline.spans[wait.to.row()].start < timeline.spans[wait.from.row()].end) {
      return describe(graph, wait.to) + " does not wait for " + describe(graph, wait.from);
    }
  }
  return "";
}

/// Changes of memory per rank and time.
class Ledger {
 public:
  Ledger(const TaskGraph& graph, const Schedule& schedule, std::span<const Span> spans)
      : changes_(graph.placement.ranks.size()) {
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      hold(graph.tasks[t].rank, spans[t].start, spans[t].end, graph.tasks[t].transient);
    }
    for (std::size_t p = 0; p < graph.pairs.size(); ++p) {
      const Pair& pair = graph.pairs[p];
      const Strategy& strategy = graph.strategy(schedule.chosen[p]);
      const RankId rank = graph.task(pair.f).rank;
      const Span reader = spans[reader_of(pair).row()];
      hold(rank, spans[pair.f.row()].start, reader.end, strategy.f_to_i);
      if (pair.b.valid() || pair.i.valid()) {
        hold(rank, reader.start, reader.end, strategy.rebuilt);
      }
      if (pair.i.valid() && pair.w.valid()) {
        hold(rank, reader.end, spans[pair.w.row()].end, strategy.i_to_w);
      }
      if (strategy.mode == RecomputeMode::Offload) {
        hold(rank, spans[pair.copy_out.row()].end, spans[pair.copy_in.row()].start,
             -strategy.offload);
      }
    }
  }

  [[nodiscard]] std::string difference(std::size_t rank, const MemoryCurve& curve) const {
    const std::string where = "memory of rank " + std::to_string(rank);
    Bytes held = curve.fixed;
    Bytes peak = held;
    std::size_t point = 0;
    for (const auto& [at, change] : changes_[rank]) {
      held += change;
      peak = std::max(peak, held);
      while (point + 1 < curve.points.size() && curve.points[point + 1].at <= at) {
        ++point;
      }
      if (held < curve.fixed || curve.points[point].held != held) {
        return where + " is not the ledger's, or falls below what it always holds";
      }
    }
    return held == curve.fixed && peak == curve.peak && curve.points.back().held == held
               ? ""
               : where + " does not return to what it was, or peaks elsewhere";
  }

 private:
  void hold(RankId rank, Time from, Time to, Bytes bytes) {
    if (from < to) {
      changes_[rank.row()][from] += bytes;
      changes_[rank.row()][to] -= bytes;
    }
  }

  std::vector<std::map<Time, Bytes>> changes_;
};

std::string broken_memory(const TaskGraph& graph, const Schedule& schedule,
                          const Timeline& timeline) {
  const std::vector<Bytes> fixed = static_memory(graph.placement);
  if (timeline.memory.size() != fixed.size()) {
    return "a rank has no memory curve";
  }
  const Ledger ledger(graph, schedule, timeline.spans);
  for (std::size_t rank = 0; rank < fixed.size(); ++rank) {
    if (timeline.memory[rank].fixed != fixed[rank]) {
      return "a rank does not start with what it always holds";
    }
    if (std::string broken = ledger.difference(rank, timeline.memory[rank]); !broken.empty()) {
      return broken;
    }
  }
  return "";
}

std::string broken_figures(const TaskGraph& graph, const Schedule& schedule,
                           const Timeline& timeline) {
  if (timeline.makespan < lower_bound(graph).makespan) {
    return "the makespan beats the lower bound";
  }
  if (timeline.iteration < timeline.makespan) {
    return "the iteration ends before its passes";
  }
  const TimelineAnalysis analysis = analyze(graph, schedule, timeline);
  for (std::size_t cell = 0; cell < analysis.busy.size(); ++cell) {
    if (analysis.busy[cell] + analysis.idle[cell].total() != timeline.makespan) {
      return "busy + idle is not the makespan on cell " + std::to_string(cell);
    }
  }
  return "";
}

}  // namespace

std::string broken_invariant(const TaskGraph& graph, const Schedule& schedule) {
  try {
    validate(graph);
    validate(graph, schedule);
    const Timeline full = simulate(graph, schedule);
    OrderEvaluator evaluator(graph);
    if (evaluator.evaluate(schedule) != full) {
      return "the evaluators differ";
    }
    for (const auto check : {broken_times, broken_memory, broken_figures}) {
      if (std::string broken = check(graph, schedule, full); !broken.empty()) {
        return broken;
      }
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace dipsim::test
