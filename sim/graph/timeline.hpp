// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/core/ids.hpp"
#include "sim/core/units.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <vector>

namespace dipsim {

/// When a task ran. For a transfer: from the start of the link's occupation to arrival.
struct Span {
  Time start{};
  Time end{};
  friend bool operator==(const Span&, const Span&) = default;
};

/// From `at` on, each GPU of the rank holds `held`.
struct MemoryPoint {
  Time at{};
  Bytes held;
  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

/// Memory of one rank over time.
struct MemoryCurve {
  Bytes fixed;                      ///< weights, gradients, optimizer state, reserve
  std::vector<MemoryPoint> points;  ///< by time, equal times merged; the first stands at kStart
  Bytes peak;
  Time peak_at{};
  friend bool operator==(const MemoryCurve&, const MemoryCurve&) = default;
};

/// Time that tasks took longer than alone, because they shared links or computed beside
/// communication.
struct LostTime {
  Duration passes{0};  ///< summed over cells
  Duration flows{0};   ///< summed over transfers, collectives and copies
  friend bool operator==(const LostTime&, const LostTime&) = default;
};

/// What happened when, as told by either evaluator.
struct Timeline {
  std::vector<Span> spans;          ///< one per task
  std::vector<MemoryCurve> memory;  ///< one per rank
  Duration makespan{0};             ///< first start to last end of the passes
  Duration iteration{0};            ///< the same plus gathers before it, gradient reduction
                                    ///< and optimizer
  LostTime lost{};                  ///< zero without contention
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Makespan and iteration time of these spans, without memory curves.
Timeline summarize(const TaskGraph& graph, std::span<const Span> spans);

}  // namespace dipsim
