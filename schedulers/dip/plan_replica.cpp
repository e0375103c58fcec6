// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/plan_replica.hpp"

#include "schedulers/dip/backward_views.hpp"
#include "schedulers/dip/batch_evaluator.hpp"
#include "schedulers/dip/elites.hpp"
#include "schedulers/dip/fixed_order.hpp"
#include "schedulers/dip/found.hpp"
#include "schedulers/dip/held.hpp"
#include "schedulers/dip/local_search.hpp"
#include "schedulers/dip/memory.hpp"
#include "schedulers/dip/polish.hpp"
#include "schedulers/dip/search_budget.hpp"
#include "schedulers/dip/split_backwards.hpp"
#include "schedulers/dip/tree_search.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dipsim::dip {

namespace {

/// Of a budget in time, the share that dip-zb spends on plans for split backwards, and on plans for
/// whole ones; in the rest the latter are split.
constexpr double kSplitShare = 0.4;

/// Group orders whose pass orders are refined.
constexpr std::size_t kElites = 8;

/// At least 1 ms of a budget in time: without any it would be one in evaluations.
std::chrono::milliseconds part_of(std::chrono::milliseconds time, double share) {
  const double part = share * static_cast<double>(time.count());
  const auto least = static_cast<double>(std::min<std::int64_t>(time.count(), 1));
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::max(part, least)));
}

SearchBudget share_of(const DipOptions& options, double share) {
  if (options.time.count() > 0) {
    return SearchBudget(part_of(options.time, share));
  }
  return SearchBudget(static_cast<std::size_t>(share * static_cast<double>(options.evaluations)));
}

/// The best of these candidates.
Found best_of(BatchEvaluator& evaluator, std::span<const Candidate> candidates) {
  const auto results = evaluator.compose(candidates);
  const auto best = std::ranges::min_element(results, {}, &Composition::makespan);
  return {.candidate = candidates[static_cast<std::size_t>(best - results.begin())],
          .composition = *best};
}

/// The natural order in the best of all ways.
Found best_natural(BatchEvaluator& evaluator, const ReplicaGraph& replica) {
  std::vector<Candidate> candidates;
  for (const Way& way : evaluator.ways()) {
    candidates.push_back({.order = natural_order(replica), .way = way});
  }
  return best_of(evaluator, candidates);
}

/// The best of all start orders in this way.
Found best_start(BatchEvaluator& evaluator, const ReplicaGraph& replica, const Way& way) {
  std::vector<Candidate> candidates;
  for (GroupOrder& order : start_orders(replica)) {
    candidates.push_back({.order = std::move(order), .way = way});
  }
  return best_of(evaluator, candidates);
}

/// All rounds of composing for what a search has found with one.
void finish(BatchEvaluator& evaluator, Found& found) {
  const auto results = evaluator.compose({&found.candidate, 1});
  if (results.front().makespan < found.composition.makespan) {
    found.composition = results.front();
  }
}

/// Strategies for a given sequence: with memory choice those that the chooser finds, else the best
/// uniform ones. Throws Infeasible where none fit.
Composition with_strategies(const ReplicaGraph& replica, std::vector<Index> sequence,
                            const DipOptions& options) {
  const auto fits = [&](const Choice& choice) { return keep_to_limit(replica, sequence, choice); };
  std::vector<Choice> possible;
  if (options.memory_choice) {
    possible.push_back(most_saving_choice(replica));
    if (fits(possible.front())) {
      MemoryChooser(replica).choose(sequence, possible.front());
    }
  } else {
    for (const RecomputeMode mode : options.memory_levels) {
      possible.push_back(uniform_choice(replica, mode));
    }
  }
  Composition best{
      .sequence = {}, .choice = {}, .makespan = std::numeric_limits<Nanoseconds>::max()};
  for (Choice& choice : possible) {
    const Nanoseconds makespan = makespan_of(replica, sequence, choice);
    if (fits(choice) && makespan < best.makespan) {
      best.choice = std::move(choice);
      best.makespan = makespan;
    }
  }
  if (best.choice.empty() && !sequence.empty()) {
    fail_infeasible("dip",
                    "Megatron's order, which the switched-off interleaver leaves, does not "
                    "fit in memory; allowed: interleaver=on, or a level that saves more");
  }
  best.sequence = std::move(sequence);
  return best;
}

}  // namespace

Composition plan_by_tree(const TaskGraph& graph, const ReplicaGraph& replica,
                         const DipOptions& options) {
  if (!options.interleaver) {
    return with_strategies(replica, megatron_order(replica), options);
  }
  const SearchBudget budget = share_of(options, 1.0);
  BatchEvaluator evaluator(graph, replica, options);
  Found found = best_natural(evaluator, replica);
  found = search_tree(evaluator, found, budget, options.tree, options.seed);
  finish(evaluator, found);
  improve_choice(replica, options, found.composition);
  return std::move(found.composition);
}

Composition plan_by_descent(const TaskGraph& graph, const ReplicaGraph& replica,
                            const DipOptions& options) {
  const SearchBudget all = share_of(options, 1.0);
  const SearchBudget for_groups = share_of(options, kGroupShare);
  BatchEvaluator evaluator(graph, replica, options);
  const Found natural = best_natural(evaluator, replica);
  Found found = best_start(evaluator, replica, natural.candidate.way);
  Elites elites(replica, kElites);
  search_locally(evaluator, replica, found, for_groups, options.seed, elites);
  found = elites.all().front();
  finish(evaluator, found);
  elites.offer(found.candidate, found.composition);
  return polish(replica, options, all, elites.all());
}

std::vector<Composition> plan_split_by_descent(const TaskGraph& graph, const ReplicaGraph& replica,
                                               const DipOptions& options) {
  const SearchBudget all = share_of(options, 1.0);
  const GraphView split = split_backwards(replica);
  const std::optional<GraphView> whole = whole_backwards(replica);
  // What is kept from I to W may make split backwards need more memory than whole ones.
  const auto possible = [](const GraphView& view) {
    return fits(memory_level(view.graph, most_saving_choice(view.graph)));
  };
  const bool whole_fits = whole && possible(*whole);
  const bool split_fits = !whole_fits || possible(split);
  DipOptions each = options;
  each.time = part_of(options.time, whole_fits && split_fits ? kSplitShare : 1.0);
  std::vector<Composition> plans;
  if (split_fits) {
    plans.push_back(expand(replica, split, plan_by_descent(graph, split.graph, each)));
  }
  if (whole_fits) {
    const Composition unsplit = expand(replica, *whole, plan_by_descent(graph, whole->graph, each));
    Composition other = unsplit;
    split_where_it_fits(replica, other);
    polish_order(replica, options, all, other);
    improve_choice(replica, options, other);
    plans.push_back(std::move(other));
    std::ranges::stable_sort(plans, {}, &Composition::makespan);
    plans.resize(1);
    plans.push_back(unsplit);
  }
  return plans;
}

}  // namespace dipsim::dip
