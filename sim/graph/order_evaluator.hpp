// SPDX-License-Identifier: Apache-2.0
// The fast evaluator: one pass over the tasks along a schedule, used inside search.
#pragma once

#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

#include <memory>
#include <span>

namespace dipsim {

/// Times the schedules of one task graph. Model: transfers are eager, first in first out per
/// ordered pair of ranks; `fixed` occupies the link, `latency` pipelines. No contention, jitter or
/// host overhead: for those there is the engine, which agrees to the nanosecond without them.
///
/// Covers graphs in which no task but passes, transfers and the copies of a pair comes before a
/// pass: gradient reductions and optimizer steps stand behind the passes of their weights, or are
/// ready from the start where the iteration has none; copies stand between the passes of their pair
/// and nowhere else. Not thread-safe: one evaluator per thread.
class OrderEvaluator {
 public:
  /// `graph` must outlive the evaluator and stay unchanged. Throws Input where the graph is not
  /// covered.
  explicit OrderEvaluator(const TaskGraph& graph);
  ~OrderEvaluator();
  OrderEvaluator(const OrderEvaluator&) = delete;
  OrderEvaluator& operator=(const OrderEvaluator&) = delete;

  /// Spans of all tasks, valid until the next call. No allocation after the first call, but for
  /// schedules with offloads. Throws Input, printing the waiting cycle, when the schedule
  /// deadlocks, and on offloads that are not in order.
  std::span<const Span> time(const Schedule& schedule);

  /// time() and the memory curves.
  Timeline evaluate(const Schedule& schedule);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dipsim
