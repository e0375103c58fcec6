// SPDX-License-Identifier: Apache-2.0
// Evaluates many candidates of an order search at once, on several threads.
#pragma once

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/options.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <deque>
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
  /// All must outlive the evaluator. Up to options.jobs threads (0: all cores), inside a
  /// parallel_for those that are free. Throws Infeasible as Composer does.
  BatchEvaluator(const TaskGraph& graph, const ReplicaGraph& replica, const DipOptions& options);

  [[nodiscard]] std::span<const Way> ways() const { return composers_.front().ways(); }

  /// Candidates that can be evaluated at once, now.
  [[nodiscard]] std::size_t jobs() const;

  /// All rounds for every candidate. The result holds until the next call. Throws Stopped where
  /// options.stop is requested; so does the next.
  std::span<const Composition> compose(std::span<const Candidate> candidates);

  /// One round for every candidate, with the pass times of `choice`.
  std::span<const Composition> compose_once(std::span<const Candidate> candidates,
                                            std::span<const Index> choice);

 private:
  template <class Compose>
  std::span<const Composition> for_each(std::span<const Candidate> candidates,
                                        const Compose& compose);

  const TaskGraph* graph_;
  const ReplicaGraph* replica_;
  const DipOptions* options_;
  std::deque<Composer> composers_;  ///< one per thread that was ever free
  std::vector<Composition> results_;
};

}  // namespace dipsim::dip
