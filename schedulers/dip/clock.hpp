// SPDX-License-Identifier: Apache-2.0
// The timing rule of the order evaluator on one replica: passes of a rank run one after the other,
// transfers queue first in first out per ordered pair of ranks.
#pragma once

#include "schedulers/dip/replica_graph.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Times passes one by one, in any order in which a pass comes after all that it waits for and in
/// which the passes of each rank stand in their final order. Times are nanoseconds from the start.
class PassClock {
 public:
  explicit PassClock(const ReplicaGraph& graph)
      : graph_(&graph),
        inputs_(graph.passes.size()),
        rank_free_(graph.ranks.size()),
        link_free_(graph.links) {}

  void reset() {
    for (std::size_t p = 0; p < inputs_.size(); ++p) {
      inputs_[p] = {.ready = 0, .missing = graph_->passes[p].predecessors};
    }
    std::ranges::fill(rank_free_, 0);
    std::ranges::fill(link_free_, 0);
    first_ = std::numeric_limits<Nanoseconds>::max();
    last_ = 0;
  }

  /// Arrival of the inputs seen so far; final once nothing is missing.
  [[nodiscard]] Nanoseconds ready(Index pass) const { return inputs_[pass].ready; }

  [[nodiscard]] bool complete(Index pass) const { return inputs_[pass].missing == 0; }

  /// End of the last pass of the rank.
  [[nodiscard]] Nanoseconds rank_free(Index rank) const { return rank_free_[rank]; }

  /// First start and last end of what ran since reset().
  [[nodiscard]] Nanoseconds first_start() const { return first_; }

  [[nodiscard]] Nanoseconds last_end() const { return last_; }

  [[nodiscard]] Nanoseconds makespan() const { return std::max<Nanoseconds>(last_ - first_, 0); }

  /// The pass, which has not run yet, starts no earlier than this.
  void hold_back(Index pass, Nanoseconds until) {
    inputs_[pass].ready = std::max(inputs_[pass].ready, until);
  }

  /// Runs a pass as soon as its rank and its inputs allow. Then calls arrived(hop, arrival, queued)
  /// for each of its hops; queued: its transfer waited for others on the link.
  template <class Arrived>
  void run(Index id, Nanoseconds duration, Arrived&& arrived) {
    const Pass& pass = graph_->passes[id];
    Nanoseconds& free = rank_free_[pass.rank];
    const Nanoseconds start = std::max(free, inputs_[id].ready);
    const Nanoseconds end = start + duration;
    free = end;
    first_ = std::min(first_, start);
    last_ = std::max(last_, end);
    Nanoseconds arrival = end;
    bool queued = false;
    for (Index h = pass.first_hop; h < pass.last_hop; ++h) {
      const Hop& hop = graph_->hops[h];
      if (hop.link == Hop::kDirect) {
        arrival = end;
        queued = false;
      } else if (hop.link != Hop::kShared) {
        Nanoseconds& link = link_free_[hop.link];
        queued = link > end;
        link = std::max(end, link) + hop.occupied;
        arrival = link + hop.latency;
      }
      Input& input = inputs_[hop.to];
      input.ready = std::max(input.ready, arrival);
      --input.missing;
      arrived(hop, arrival, queued);
    }
  }

 private:
  struct Input {
    Nanoseconds ready = 0;
    Index missing = 0;
  };

  const ReplicaGraph* graph_;
  std::vector<Input> inputs_;
  std::vector<Nanoseconds> rank_free_;
  std::vector<Nanoseconds> link_free_;
  Nanoseconds first_ = 0;
  Nanoseconds last_ = 0;
};

/// Makespan of a whole sequence of passes at these durations (one per pass).
Nanoseconds retime(PassClock& clock, std::span<const Index> sequence,
                   std::span<const Nanoseconds> durations);

}  // namespace dipsim::dip
