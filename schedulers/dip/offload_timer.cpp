// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/offload_timer.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace dipsim::dip {

OffloadTimer::OffloadTimer(const ReplicaGraph& replica, std::span<const Index> sequence,
                           std::span<const Variant> variants)
    : graph_(&replica),
      sequence_(sequence),
      variants_(variants),
      position_(replica.passes.size()),
      order_(replica.ranks.size()),
      clock_(replica),
      start_(replica.passes.size()),
      end_(replica.passes.size()),
      out_free_(replica.ranks.size()),
      in_free_(replica.ranks.size()),
      first_fetch_(replica.passes.size()),
      next_fetch_(replica.pair_count()) {
  for (const Index pass : sequence) {
    std::vector<Index>& order = order_[replica.passes[pass].rank];
    position_[pass] = static_cast<Index>(order.size());
    order.push_back(pass);
  }
}

std::vector<Index> OffloadTimer::by_fetch(std::span<const Window> windows) const {
  std::vector<Index> pairs;
  for (Index pair = 0; pair < windows.size(); ++pair) {
    if (windows[pair].away()) {
      pairs.push_back(pair);
    }
  }
  std::ranges::sort(pairs, {}, [&](Index pair) {
    return std::tuple(graph_->passes[pair].rank, windows[pair].fetched,
                      position_[graph_->backward[pair]]);
  });
  return pairs;
}

Nanoseconds OffloadTimer::time(std::span<const Nanoseconds> durations,
                               std::span<const Window> windows) {
  std::ranges::fill(out_free_, 0);
  std::ranges::fill(in_free_, 0);
  std::ranges::fill(first_fetch_, ReplicaGraph::kNone);
  const std::vector<Index> pairs = by_fetch(windows);
  for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
    const Index pass = order_[graph_->passes[*pair].rank][windows[*pair].fetched];
    next_fetch_[*pair] = std::exchange(first_fetch_[pass], *pair);
  }
  clock_.reset();
  for (const Index pass : sequence_) {
    clock_.run(pass, durations[pass], [](const Hop&, Nanoseconds, bool) {});
    const Index rank = graph_->passes[pass].rank;
    const Nanoseconds end = clock_.rank_free(rank);
    start_[pass] = end - durations[pass];
    end_[pass] = end;
    if (graph_->is_forward(pass) && windows[pass].away()) {
      const Nanoseconds length = variants_[pass].out;
      const Nanoseconds until = (length > 0 ? std::max(end, out_free_[rank]) : end) + length;
      out_free_[rank] = std::max(out_free_[rank], until);
      clock_.hold_back(order_[rank][windows[pass].freed], until);
    }
    for (Index pair = first_fetch_[pass]; pair != ReplicaGraph::kNone; pair = next_fetch_[pair]) {
      const Nanoseconds length = variants_[pair].in;
      const Nanoseconds until = (length > 0 ? std::max(end, in_free_[rank]) : end) + length;
      in_free_[rank] = std::max(in_free_[rank], until);
      clock_.hold_back(graph_->backward[pair], until);
    }
  }
  return clock_.makespan();
}

}  // namespace dipsim::dip
