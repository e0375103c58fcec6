// SPDX-License-Identifier: Apache-2.0
// Evaluates many candidates of an order search at once, on several threads.
#pragma once

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/options.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// What a search tries.
struct Candidate {
  GroupOrder order;
  Way way;
};

/// Composes candidates of one replica. Results stand in the order of the candidates, whatever the
/// number of threads.
class BatchEvaluator {
 public:
  /// `replica` and `options` must outlive the evaluator; options.jobs threads (0: all cores), or
  /// one inside a parallel_for.
  /// Throws Infeasible as Composer does.
  BatchEvaluator(const TaskGraph& graph, const ReplicaGraph& replica, const DipOptions& options);

  [[nodiscard]] std::span<const Way> ways() const { return composers_.front().ways(); }

  /// Candidates that can be evaluated at once.
  [[nodiscard]] std::size_t jobs() const { return composers_.size(); }

  /// All rounds for every candidate. The result holds until the next call.
  std::span<const Composition> compose(std::span<const Candidate> candidates);

  /// One round for every candidate, with the pass times of `choice`.
  std::span<const Composition> compose_once(std::span<const Candidate> candidates,
                                            std::span<const Index> choice);

 private:
  template <class Compose>
  std::span<const Composition> for_each(std::span<const Candidate> candidates,
                                        const Compose& compose);

  std::vector<Composer> composers_;  ///< one per thread
  std::vector<Composition> results_;
};

}  // namespace dipsim::dip
