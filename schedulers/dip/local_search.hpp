// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/batch_evaluator.hpp"
#include "schedulers/dip/elites.hpp"
#include "schedulers/dip/found.hpp"
#include "schedulers/dip/search_budget.hpp"

#include <cstdint>

namespace dipsim::dip {

/// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983) over group orders and
/// ways of composing, from `start`: each change is evaluated with the pass times of the current
/// composition. One change per thread is evaluated ahead; those behind an accepted one are dropped
/// and not counted, so that the outcome depends on the seed and on the budget in evaluations, not
/// on the number of threads. Offers all that it evaluates to `elites`, the start too, so that the
/// best of these is never worse than the start.
void search_locally(BatchEvaluator& evaluator, const ReplicaGraph& replica, const Found& start,
                    const SearchBudget& budget, std::uint64_t seed, Elites& elites);

}  // namespace dipsim::dip
