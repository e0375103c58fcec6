// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/batch_evaluator.hpp"
#include "schedulers/dip/found.hpp"
#include "schedulers/dip/options.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "schedulers/dip/search_budget.hpp"

#include <cstdint>

namespace dipsim::dip {

/// Monte Carlo tree search over priorities (arXiv 2504.14145, level 1 of the schedule searcher). A
/// node at depth d fixes the d groups of highest priority (all works of a module on a microbatch
/// are one group: the paper's pruning of equal segments). Selection maximises s^α + β √(ln N / n),
/// where s is the best score below the child and the score of an order is the makespan of the
/// natural order over its own; each visit adds one node, tries `rollouts` completions of it through
/// interleaving and memory choice, and backs the best score up.
///
/// Open in the paper, chosen here (TreeSearchOptions): α, β; a node gets its next child, in natural
/// order, when its visits have grown to the square of its children (progressive widening: Coulom,
/// 2007), since a node has over a hundred children; completions keep the natural order but for
/// random shifts, or are uniform; backward groups inherit the priority of their forward group, or
/// are elements of the permutation themselves. Several leaves are expanded at once, so that
/// leaves × rollouts evaluations run in parallel; visits are counted before their scores are known,
/// in a fixed order: the outcome does not depend on the number of threads. Returns the best found,
/// never worse than `start`, which is of the natural order.
Found search_tree(BatchEvaluator& evaluator, const Found& start, const SearchBudget& budget,
                  const TreeSearchOptions& options, std::uint64_t seed);

}  // namespace dipsim::dip
