// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/fixed_order.hpp"

#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/static/orders.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <span>

namespace dipsim::dip {

namespace {

/// The passes of a replica in the terms of a fixed order: by rank, direction, place of the chunk on
/// its rank, and microbatch. Backwards come with their W.
class PassTable {
 public:
  explicit PassTable(const ReplicaGraph& replica) : shape_(shape_of(replica)) {
    const std::vector<int> microbatch = microbatches(replica);
    std::vector<std::set<ChunkId>> chunks(replica.ranks.size());
    for (Index pair = 0; pair < replica.pair_count(); ++pair) {
      chunks[replica.passes[pair].rank].insert(replica.chunk[pair]);
    }
    for (const auto& of_rank : chunks) {
      shape_.chunks = std::max(shape_.chunks, static_cast<int>(of_rank.size()));
    }
    passes_.resize(2 * replica.ranks.size() * static_cast<std::size_t>(shape_.chunks) *
                   static_cast<std::size_t>(shape_.microbatches));
    for (const Index pass : natural_passes(replica)) {
      const Index pair = replica.passes[pass].pair;
      const Index rank = replica.passes[pass].rank;
      const auto chunk =
          std::distance(chunks[rank].begin(), chunks[rank].find(replica.chunk[pair]));
      const Step step{.op = replica.is_forward(pass) ? Op::F : Op::B,
                      .chunk = static_cast<int>(chunk),
                      .microbatch = microbatch[pair]};
      passes_[row(rank, step)].push_back(pass);
    }
  }

  [[nodiscard]] const PipelineShape& shape() const { return shape_; }

  [[nodiscard]] std::span<const Index> of(Index rank, const Step& step) const {
    return passes_[row(rank, step)];
  }

 private:
  static PipelineShape shape_of(const ReplicaGraph& replica) {
    std::set<MicrobatchId> all;
    for (const Group& group : replica.groups) {
      all.insert(group.microbatch);
    }
    return {.ranks = static_cast<int>(replica.ranks.size()),
            .microbatches = static_cast<int>(all.size()),
            .chunks = 0};
  }

  /// Per pair; groups stand microbatch by microbatch.
  static std::vector<int> microbatches(const ReplicaGraph& replica) {
    std::vector<int> of_pair(replica.pair_count());
    int microbatch = -1;
    for (std::size_t g = 0; g < replica.groups.size(); ++g) {
      const Group& group = replica.groups[g];
      microbatch += g == 0 || group.microbatch != replica.groups[g - 1].microbatch ? 1 : 0;
      std::fill(of_pair.begin() + group.first_forward, of_pair.begin() + group.last_forward,
                microbatch);
    }
    return of_pair;
  }

  [[nodiscard]] std::size_t row(Index rank, const Step& step) const {
    const auto place = [](std::size_t line, int columns, int column) {
      return line * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
    };
    const std::size_t direction = place(rank, 2, step.op == Op::F ? 0 : 1);
    return place(place(direction, shape_.chunks, step.chunk), shape_.microbatches, step.microbatch);
  }

  PipelineShape shape_;
  std::vector<std::vector<Index>> passes_;
};

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

std::vector<Index> megatron_order(const ReplicaGraph& replica) {
  const PassTable table(replica);
  if (table.shape().microbatches > 0) {
    require_whole_groups(table.shape(), "dip:interleaver=off");
  }
  std::vector<std::vector<Index>> orders(replica.ranks.size());
  for (Index rank = 0; rank < orders.size(); ++rank) {
    for (const Step& step : interleaved_steps(table.shape(), static_cast<int>(rank))) {
      const std::span<const Index> passes = table.of(rank, step);
      orders[rank].insert(orders[rank].end(), passes.begin(), passes.end());
    }
  }
  return merge(replica, orders);
}

std::vector<Index> sequential_order(const ReplicaGraph& replica) {
  std::vector<Index> passes = natural_passes(replica);
  std::ranges::stable_sort(
      passes, {}, [&](Index pass) { return replica.component[replica.passes[pass].pair]; });
  std::vector<std::vector<Index>> orders(replica.ranks.size());
  for (const Index pass : passes) {
    orders[replica.passes[pass].rank].push_back(pass);
  }
  return merge(replica, orders);
}

}  // namespace dipsim::dip
