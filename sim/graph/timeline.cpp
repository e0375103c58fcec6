// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/timeline.hpp"

#include <algorithm>

namespace dipsim {

Timeline summarize(const TaskGraph& graph, std::span<const Span> spans) {
  Time first = Time::max();
  Time first_gather = Time::max();
  Time last_pass = kStart;
  Time last = kStart;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    last = std::max(last, spans[i].end);
    if (is_pass(graph.tasks[i].op)) {
      first = std::min(first, spans[i].start);
      last_pass = std::max(last_pass, spans[i].end);
    } else if (graph.tasks[i].op == Op::Gather) {
      first_gather = std::min(first_gather, spans[i].start);
    }
  }
  Timeline timeline;
  timeline.spans.assign(spans.begin(), spans.end());
  if (first != Time::max()) {
    timeline.makespan = last_pass - first;
    timeline.iteration = last - std::min(first, first_gather);
  }
  return timeline;
}

}  // namespace dipsim
