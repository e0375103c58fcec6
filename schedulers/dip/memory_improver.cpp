// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory_improver.hpp"

#include <cstddef>

namespace dipsim::dip {

MemoryImprover::MemoryImprover(const ReplicaGraph& replica)
    : graph_(&replica),
      places_(replica),
      solver_(places_.most_pairs(), places_.most_positions(), replica.options.size()),
      proofs_(replica.ranks.size()) {
  pairs_.reserve(places_.most_pairs());
  chosen_.reserve(places_.most_pairs());
}

bool MemoryImprover::improve(std::span<const Index> sequence, std::span<Index> choice,
                             const MemoryEffort& effort) {
  places_.find(sequence);
  bool improved = false;
  for (Index rank = 0; rank < graph_->ranks.size(); ++rank) {
    const MemoryProblem problem = problem_of(*graph_, places_, rank, pairs_);
    const std::span<const Index> pairs = places_.pairs_of(rank);
    chosen_.clear();
    for (const Index pair : pairs) {
      chosen_.push_back(choice[pair]);
    }
    const Nanoseconds before = time_of(problem, chosen_);
    proofs_[rank] = solver_.solve(problem, chosen_, effort);
    if (proofs_[rank].time < before) {
      improved = true;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        choice[pairs[i]] = chosen_[i];
      }
    }
  }
  return improved;
}

}  // namespace dipsim::dip
