// SPDX-License-Identifier: Apache-2.0
// What follows the search over priorities: orders that these can't express, and the best strategies
// for them.
#pragma once

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/found.hpp"
#include "schedulers/dip/options.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "schedulers/dip/search_budget.hpp"

#include <span>

namespace dipsim::dip {

/// Share of the budget in evaluations that the search over the order of groups may use; polishing
/// takes as long as the rest would.
inline constexpr double kGroupShare = 0.6;

/// Refines the pass orders of the elites (one or more) and chooses the strategies anew, in turns:
/// all elites a little, the better half of them more, and so on (successive halving: Karnin, Koren
/// and Somekh, ICML 2013). Returns the best, which is no worse than the first. Where the options
/// give a time, until `all` is used up. On options.jobs threads; only a budget in time makes the
/// result depend on them.
Composition polish(const ReplicaGraph& replica, const DipOptions& options, const SearchBudget& all,
                   std::span<const Found> elites);

/// Refines the pass order alone, with the same effort; the strategies stay.
void polish_order(const ReplicaGraph& replica, const DipOptions& options, const SearchBudget& all,
                  Composition& composition);

/// The strategies that MemoryImprover finds for the order, where the makespan is less with them.
/// Only where the options ask for memory choice and a search.
void improve_choice(const ReplicaGraph& replica, const DipOptions& options,
                    Composition& composition);

}  // namespace dipsim::dip
