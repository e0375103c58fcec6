// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/batch_evaluator.hpp"

#include "sim/core/parallel.hpp"

#include <algorithm>
#include <atomic>

namespace dipsim::dip {

BatchEvaluator::BatchEvaluator(const TaskGraph& graph, const ReplicaGraph& replica,
                               const DipOptions& options)
    : graph_(&graph), replica_(&replica), options_(&options) {
  composers_.emplace_back(graph, replica, options);
}

std::size_t BatchEvaluator::jobs() const { return usable_jobs(options_->jobs); }

template <class Compose>
std::span<const Composition> BatchEvaluator::for_each(std::span<const Candidate> candidates,
                                                      const Compose& compose) {
  if (results_.size() < candidates.size()) {
    results_.resize(candidates.size());
  }
  const std::size_t threads = std::min(jobs(), candidates.size());
  while (composers_.size() < threads) {
    composers_.emplace_back(*graph_, *replica_, *options_);
  }
  std::atomic<std::size_t> next{0};
  parallel_for(threads, threads, [&](std::size_t job) {
    for (std::size_t i = next.fetch_add(1);
         i < candidates.size() && !options_->stop.stop_requested(); i = next.fetch_add(1)) {
      results_[i] = compose(composers_[job], candidates[i]);
    }
  });
  throw_if_stopped(options_->stop);
  return std::span(results_).first(candidates.size());
}

std::span<const Composition> BatchEvaluator::compose(std::span<const Candidate> candidates) {
  return for_each(candidates,
                  [](Composer& composer, const Candidate& candidate) -> const Composition& {
                    return composer.compose(candidate.order, candidate.way);
                  });
}

std::span<const Composition> BatchEvaluator::compose_once(std::span<const Candidate> candidates,
                                                          std::span<const Index> choice) {
  return for_each(candidates,
                  [&](Composer& composer, const Candidate& candidate) -> const Composition& {
                    return composer.compose_once(candidate.order, candidate.way, choice);
                  });
}

}  // namespace dipsim::dip
