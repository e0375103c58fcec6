// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/adjacency.hpp"

#include <array>

namespace dipsim {

Successors::Successors(const TaskGraph& graph, std::span<const Edge> more)
    : offsets_(graph.tasks.size() + 1, 0),
      targets_(graph.edges.size() + more.size()),
      counts_(graph.tasks.size(), 0) {
  const std::array<std::span<const Edge>, 2> all = {graph.edges, more};
  for (const std::span<const Edge> edges : all) {
    for (const Edge& edge : edges) {
      ++offsets_[edge.from.row() + 1];
      ++counts_[edge.to.row()];
    }
  }
  for (std::size_t i = 1; i < offsets_.size(); ++i) {
    offsets_[i] += offsets_[i - 1];
  }
  std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (const std::span<const Edge> edges : all) {
    for (const Edge& edge : edges) {
      targets_[next[edge.from.row()]++] = edge.to;
    }
  }
}

}  // namespace dipsim
