// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <functional>
#include <stop_token>

namespace dipsim {

/// How planning is watched and ended from outside. No plan depends on it.
struct PlanControl {
  std::size_t jobs = 0;  ///< threads; 0: all cores
  /// Where it is requested, place() and order() throw Stopped (sim/core/parallel.hpp) soon.
  std::stop_token stop{};
  /// order() has planned so many more replicas; from any thread. May be empty; so may the next.
  std::function<void(std::size_t)> planned{};
  /// place() has tried one more placement; from any thread.
  std::function<void()> tried{};
};

/// A scheduling method, in the three steps that every method has. Thread-safe: one planner serves
/// many iterations at once.
class Planner {
 public:
  virtual ~Planner() = default;

  /// Once per run: which layers live on which rank, chosen on a representative batch.
  [[nodiscard]] virtual Placement place(const Lowering& lowering,
                                        const Batch& representative) const = 0;

  /// Per batch: which work exists.
  [[nodiscard]] virtual Draft slice(const Placement& placement, const Batch& batch,
                                    const Lowering& lowering) const = 0;

  /// Per batch: the order of the passes on every cell, and the strategy of every pair. Throws Input
  /// where the method's own rules forbid this shape (naming the nearest legal one), Infeasible
  /// where nothing fits in memory.
  [[nodiscard]] virtual Schedule order(const TaskGraph& graph) const = 0;

 protected:
  Planner() = default;
  Planner(const Planner&) = default;
  Planner& operator=(const Planner&) = default;
};

}  // namespace dipsim
