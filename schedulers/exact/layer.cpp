// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/layer.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace dipsim::exact {

void Layer::add(const Node& node, std::span<const Nanoseconds> node_times) {
  nodes.push_back(node);
  nodes.back().times = times.size();
  times.insert(times.end(), node_times.begin(), node_times.end());
}

Mask tight_ranks(const Problem& problem, Mask done) {
  Mask tight = 0;
  for (Index r = 0; r < problem.ranks.size() && problem.memory_matters; ++r) {
    const RankPasses& rank = problem.ranks[r];
    ByteCount most = 0;
    ByteCount needs = 0;
    for_each(rank.passes, [&](Index p) {
      const Pass& pass = problem.passes[p];
      if (has(done, p)) {
        most += pass.change;
      } else {
        most += std::max<ByteCount>(0, pass.change);
        needs = std::max(needs, pass.needs);
      }
    });
    tight |= most + needs > rank.room ? bit(r) : 0;
  }
  return tight;
}

void Dominance::filter(Layer& layer, Nanoseconds cutoff) {
  order_.resize(layer.nodes.size());
  std::iota(order_.begin(), order_.end(), 0U);
  // What dominates a node has no larger sum.
  std::ranges::sort(order_, [&](std::uint32_t x, std::uint32_t y) {
    const Node& a = layer.nodes[x];
    const Node& b = layer.nodes[y];
    return std::tie(a.done, a.sum, x) < std::tie(b.done, b.sum, y);
  });
  kept_.clear();
  std::size_t first = 0;  // of the nodes with the set at hand
  for (const std::uint32_t number : order_) {
    const Node& node = layer.nodes[number];
    if (node.bound >= cutoff) {
      continue;
    }
    if (kept_.nodes.empty() || kept_.nodes.back().done != node.done) {
      first = kept_.nodes.size();
      tight_ = tight_ranks(problem_, node.done);
      length_ = times_per_node(problem_, node.done);
    }
    const bool dominated =
        std::any_of(kept_.nodes.begin() + static_cast<std::ptrdiff_t>(first), kept_.nodes.end(),
                    [&](const Node& other) { return dominates(kept_, other, layer, node); });
    if (!dominated) {
      kept_.add(node, {layer.times_of(node), length_});
    }
  }
  std::swap(layer, kept_);
}

bool Dominance::dominates(const Layer& layer_a, const Node& a, const Layer& layer_b,
                          const Node& b) const {
  const Nanoseconds* times_a = layer_a.times_of(a);
  const Nanoseconds* times_b = layer_b.times_of(b);
  for (std::size_t i = 0; i < length_; ++i) {
    if (times_a[i] > times_b[i]) {
      return false;
    }
  }
  if (a.fillers == b.fillers) {
    return true;
  }
  for (Index r = 0; r < problem_.ranks.size(); ++r) {
    if (times_a[r] + behind(r, a.fillers, b.fillers) > times_b[r]) {
      return false;
    }
  }
  return true;
}

/// Total time of the fillers that A is behind. Where they may be swapped, every filler left to A
/// only, the longest first, goes to the shortest of those left to B only that is no shorter: that
/// leaves the least total, because what can take a longer one can take a shorter one too.
Nanoseconds Dominance::behind(Index rank, Mask fillers_a, Mask fillers_b) const {
  const Mask all = problem_.ranks[rank].fillers;
  Mask left_to_b = all & ~fillers_b & fillers_a;
  Nanoseconds total = 0;
  for_each(all & ~fillers_a & fillers_b, [&](Index f) {
    const Nanoseconds time = problem_.fillers[f].time;
    Mask taker = 0;
    if (!has(tight_, rank)) {
      for_each(left_to_b, [&](Index g) {  // descending times: the last one is the shortest
        taker = problem_.fillers[g].time >= time ? bit(g) : taker;
      });
    }
    left_to_b &= ~taker;
    total += taker == 0 ? time : 0;
  });
  return total;
}

Nanoseconds narrow(Layer& layer, std::size_t width) {
  Nanoseconds dropped = std::numeric_limits<Nanoseconds>::max();
  if (layer.nodes.size() <= width) {
    return dropped;
  }
  std::vector<std::uint32_t> order(layer.nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(width);
  std::nth_element(order.begin(), last, order.end(), [&](std::uint32_t x, std::uint32_t y) {
    const Node& a = layer.nodes[x];
    const Node& b = layer.nodes[y];
    return std::tie(a.bound, a.sum, x) < std::tie(b.bound, b.sum, y);
  });
  for (auto it = last; it != order.end(); ++it) {
    dropped = std::min(dropped, layer.nodes[*it].bound);
  }
  std::sort(order.begin(), last);
  for (std::size_t i = 0; i < width; ++i) {
    layer.nodes[i] = layer.nodes[order[i]];
  }
  layer.nodes.resize(width);
  return dropped;
}

}  // namespace dipsim::exact
