// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/fixed_order.hpp"

#include "schedulers/dip/clock.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace dipsim::dip {

namespace {

/// Passes of one direction, by rank, place of the chunk on its rank, and microbatch.
class VirtualMicrobatches {
 public:
  VirtualMicrobatches(const TaskGraph& graph, const ReplicaGraph& replica)
      : ranks_(replica.ranks.size()) {
    std::vector<std::set<ChunkId>> chunks(ranks_);
    std::set<MicrobatchId> microbatches;
    for (const Group& group : replica.groups) {
      microbatches.insert(group.microbatch);
    }
    for (const TaskId task : replica.tasks) {
      const ChunkId chunk = graph.task(task).chunk;
      chunks[rank_of(replica, graph.task(task).rank)].insert(chunk);
    }
    for (const auto& of_rank : chunks) {
      chunks_ = std::max(chunks_, of_rank.size());
    }
    microbatches_ = microbatches.size();
    forward_.resize(ranks_ * chunks_ * microbatches_);
    backward_.resize(forward_.size());
    for (const Group& group : replica.groups) {
      const auto m = static_cast<std::size_t>(
          std::distance(microbatches.begin(), microbatches.find(group.microbatch)));
      const auto add = [&](Index first, Index last, std::vector<std::vector<Index>>& to) {
        for (Index pass = first; pass < last; ++pass) {
          const Index rank = replica.passes[pass].rank;
          const auto& of_rank = chunks[rank];
          const auto c = static_cast<std::size_t>(
              std::distance(of_rank.begin(), of_rank.find(graph.task(replica.tasks[pass]).chunk)));
          std::vector<Index>& passes = to[(rank * chunks_ + c) * microbatches_ + m];
          passes.push_back(pass);
          if (const Index weight = replica.weight[replica.passes[pass].pair];
              !replica.is_forward(pass) && weight != ReplicaGraph::kNone) {
            passes.push_back(weight);
          }
        }
      };
      add(group.first_forward, group.last_forward, forward_);
      add(group.first_backward, group.last_backward, backward_);
    }
  }

  [[nodiscard]] std::size_t count() const { return microbatches_; }

  [[nodiscard]] std::size_t per_rank() const { return chunks_ * microbatches_; }

  /// The k-th of a rank: in groups of p microbatches, each group through one chunk after the other;
  /// backwards take the chunks in reverse.
  [[nodiscard]] std::span<const Index> forward(std::size_t rank, std::size_t k) const {
    return forward_[place(rank, k / ranks_ % chunks_, k)];
  }

  [[nodiscard]] std::span<const Index> backward(std::size_t rank, std::size_t k) const {
    return backward_[place(rank, chunks_ - 1 - k / ranks_ % chunks_, k)];
  }

  [[nodiscard]] std::size_t warm_up(std::size_t rank) const {
    return std::min(2 * (ranks_ - 1 - rank) + (chunks_ - 1) * ranks_, per_rank());
  }

 private:
  static Index rank_of(const ReplicaGraph& replica, RankId rank) {
    return static_cast<Index>(std::ranges::find(replica.ranks, rank) - replica.ranks.begin());
  }

  [[nodiscard]] std::size_t place(std::size_t rank, std::size_t chunk, std::size_t k) const {
    const std::size_t microbatch = k / (ranks_ * chunks_) * ranks_ + k % ranks_;
    return (rank * chunks_ + chunk) * microbatches_ + microbatch;
  }

  std::size_t ranks_;
  std::size_t chunks_ = 0;
  std::size_t microbatches_ = 0;
  std::vector<std::vector<Index>> forward_;
  std::vector<std::vector<Index>> backward_;
};

std::vector<Index> order_of_rank(const VirtualMicrobatches& all, std::size_t rank) {
  std::vector<Index> order;
  const std::size_t warm_up = all.warm_up(rank);
  for (std::size_t k = 0; k < all.per_rank() + warm_up; ++k) {
    if (k < all.per_rank()) {
      const auto passes = all.forward(rank, k);
      order.insert(order.end(), passes.begin(), passes.end());
    }
    if (k >= warm_up) {
      const auto passes = all.backward(rank, k - warm_up);
      order.insert(order.end(), passes.begin(), passes.end());
    }
  }
  return order;
}

/// Merges the orders of the ranks so that every pass follows what it waits for.
std::vector<Index> merge(const ReplicaGraph& replica,
                         const std::vector<std::vector<Index>>& orders) {
  PassClock clock(replica);
  clock.reset();
  std::vector<Index> sequence;
  std::vector<std::size_t> next(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      while (next[rank] < orders[rank].size() && clock.complete(orders[rank][next[rank]])) {
        const Index pass = orders[rank][next[rank]++];
        clock.run(pass, 1, [](const Hop&, Nanoseconds, bool) {});
        sequence.push_back(pass);
        moved = true;
      }
    }
  }
  if (sequence.size() < replica.passes.size()) {
    fail_input("dip", "the passes of the task graph wait for each other in a cycle");
  }
  return sequence;
}

}  // namespace

std::vector<Index> megatron_order(const TaskGraph& graph, const ReplicaGraph& replica) {
  const VirtualMicrobatches all(graph, replica);
  const std::size_t ranks = replica.ranks.size();
  if (all.count() % ranks != 0) {
    fail_input("microbatches",
               fmt::format("{} per replica on {} ranks with dip's interleaver off; Megatron-LM's "
                           "order, which takes its place, allows multiples of {}; nearest legal: "
                           "{}",
                           all.count(), ranks, ranks,
                           std::max<std::size_t>(1, (all.count() + ranks / 2) / ranks) * ranks));
  }
  std::vector<std::vector<Index>> orders;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    orders.push_back(order_of_rank(all, rank));
  }
  return merge(replica, orders);
}

std::vector<Index> sequential_order(const ReplicaGraph& replica) {
  std::vector<std::vector<Index>> of_component(replica.components);
  const auto add = [&](Index pass) {
    of_component[replica.component[replica.passes[pass].pair]].push_back(pass);
  };
  for (Index pass = 0; pass < replica.pair_count(); ++pass) {
    add(pass);
  }
  for (std::size_t g = replica.groups.size(); g-- > 0;) {
    const Group& group = replica.groups[g];
    for (Index pass = group.first_backward; pass < group.last_backward; ++pass) {
      add(pass);
      if (const Index weight = replica.weight[replica.passes[pass].pair];
          weight != ReplicaGraph::kNone) {
        add(weight);
      }
    }
  }
  std::vector<std::vector<Index>> orders(replica.ranks.size());
  for (const std::vector<Index>& passes : of_component) {
    for (const Index pass : passes) {
      orders[replica.passes[pass].rank].push_back(pass);
    }
  }
  return merge(replica, orders);
}

}  // namespace dipsim::dip
