// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/memory_steps.hpp"

#include <algorithm>
#include <cstddef>

namespace dipsim::exact {

std::vector<MemoryStep> memory_steps(const TaskGraph& graph, std::span<const StrategyId> chosen) {
  std::vector<MemoryStep> steps(graph.tasks.size());
  const auto set = [&](TaskId task, Bytes during, Bytes change) {
    const Bytes transient = graph.task(task).transient;
    steps[task.row()] = {.needs = std::max((during + transient).count, change.count),
                         .change = change.count};
  };
  for (std::size_t i = 0; i < graph.pairs.size(); ++i) {
    const Pair& pair = graph.pairs[i];
    const Strategy& s = graph.strategy(chosen[i]);
    const TaskId backward = pair.b.valid() ? pair.b : pair.i;
    set(pair.f, s.f_to_i, backward.valid() || pair.w.valid() ? s.f_to_i : Bytes{});
    if (backward.valid()) {
      set(backward, s.rebuilt, (pair.w.valid() ? s.i_to_w : Bytes{}) - s.f_to_i);
    }
    if (pair.w.valid()) {
      set(pair.w, Bytes{}, -(backward.valid() ? s.i_to_w : s.f_to_i));
    }
  }
  return steps;
}

}  // namespace dipsim::exact
