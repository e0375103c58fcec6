// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/adjacency.hpp"

namespace dipsim {

Successors::Successors(const TaskGraph& graph)
    : offsets_(graph.tasks.size() + 1, 0),
      targets_(graph.edges.size()),
      counts_(graph.tasks.size(), 0) {
  for (const Edge& edge : graph.edges) {
    ++offsets_[edge.from.row() + 1];
    ++counts_[edge.to.row()];
  }
  for (std::size_t i = 1; i < offsets_.size(); ++i) {
    offsets_[i] += offsets_[i - 1];
  }
  std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (const Edge& edge : graph.edges) {
    targets_[next[edge.from.row()]++] = edge.to;
  }
}

}  // namespace dipsim
