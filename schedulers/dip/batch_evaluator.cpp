// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/batch_evaluator.hpp"

#include "sim/core/parallel.hpp"

#include <atomic>

namespace dipsim::dip {

BatchEvaluator::BatchEvaluator(const TaskGraph& graph, const ReplicaGraph& replica,
                               const DipOptions& options) {
  const std::size_t jobs = usable_jobs(options.jobs);
  composers_.reserve(jobs);
  for (std::size_t job = 0; job < jobs; ++job) {
    composers_.emplace_back(graph, replica, options);
  }
}

template <class Compose>
std::span<const Composition> BatchEvaluator::for_each(std::span<const Candidate> candidates,
                                                      const Compose& compose) {
  if (results_.size() < candidates.size()) {
    results_.resize(candidates.size());
  }
  std::atomic<std::size_t> next{0};
  const std::size_t jobs = std::min(composers_.size(), candidates.size());
  parallel_for(jobs, jobs, [&](std::size_t job) {
    for (std::size_t i = next.fetch_add(1); i < candidates.size(); i = next.fetch_add(1)) {
      results_[i] = compose(composers_[job], candidates[i]);
    }
  });
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
