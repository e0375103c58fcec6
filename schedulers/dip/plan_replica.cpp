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
#include "schedulers/dip/refine.hpp"
#include "schedulers/dip/search_budget.hpp"
#include "schedulers/dip/split_backwards.hpp"
#include "schedulers/dip/tree_search.hpp"
#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dipsim::dip {

namespace {

/// Moves of the pass order that are looked at for each evaluation: as many as take about as long,
/// and so many more in small graphs that these are searched from end to end: some for every pass,
/// as far as the square of the number of passes, which a search from end to end takes, allows.
constexpr std::size_t kStepsPerEvaluation = 20;
constexpr std::size_t kMoreStepsPerPass = 60;
constexpr std::size_t kMoreSteps = 2'500'000;

/// Moves between two looks at the clock, where the budget is in time.
constexpr std::size_t kTimedSteps = 2'000;

/// Share of the budget for the order of groups; the rest is for the order of passes.
constexpr double kGroupShare = 0.6;

/// Of a budget in time, the share that dip-zb spends on plans for split backwards, and on plans for
/// whole ones; in the rest the latter are split.
constexpr double kSplitShare = 0.4;

/// Group orders whose pass orders are refined.
constexpr std::size_t kElites = 8;

/// Most turns of refinement and memory choice.
constexpr std::size_t kTurns = 4;

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

/// The best of all start orders in the way that suits the natural one best.
Found best_start(BatchEvaluator& evaluator, const ReplicaGraph& replica) {
  const Found natural = best_natural(evaluator, replica);
  std::vector<Candidate> candidates;
  for (GroupOrder& order : start_orders(replica)) {
    candidates.push_back({.order = std::move(order), .way = natural.candidate.way});
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

bool keeps_to_limit(const ReplicaGraph& replica, std::span<const Index> sequence,
                    std::span<const Index> choice) {
  return std::ranges::min(least_free(replica, sequence, choice)) >= 0;
}

bool has_choice(const ReplicaGraph& replica) {
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    if (replica.options_of(pair).size() > 1) {
      return true;
    }
  }
  return false;
}

/// Improves a composition outside the space of priorities.
class Polisher {
 public:
  Polisher(const ReplicaGraph& replica, const DipOptions& options)
      : replica_(replica),
        options_(options),
        refiner_(replica),
        chooser_(replica),
        most_saving_(most_saving_choice(replica)),
        clock_(replica),
        durations_(replica.passes.size()),
        turns_(options.memory_choice && has_choice(replica) ? kTurns : 1) {}

  /// Refines the pass order and chooses the strategies for it anew, in turns.
  void polish(Composition& best, std::size_t steps, std::uint64_t seed) {
    for (std::size_t turn = 0; turn < turns_; ++turn) {
      Composition next = best;
      refiner_.refine(next, {.steps = steps / turns_, .seed = seed + turn});
      if (next.makespan < best.makespan) {
        best = next;
      }
      // The order fits with its own strategies; those that hold least may rebuild or keep more.
      if (turns_ > 1 && keeps_to_limit(replica_, next.sequence, most_saving_)) {
        chooser_.choose(next.sequence, next.choice);
        set_durations(replica_, next.choice, durations_);
        next.makespan = retime(clock_, next.sequence, durations_);
        if (next.makespan < best.makespan) {
          best = std::move(next);
        }
      }
    }
  }

 private:
  const ReplicaGraph& replica_;
  const DipOptions& options_;
  Refiner refiner_;
  MemoryChooser chooser_;
  Choice most_saving_;
  PassClock clock_;
  std::vector<Nanoseconds> durations_;
  std::size_t turns_;
};

/// Polishes all elites a little, the better half of them more, and so on (successive halving:
/// Karnin, Koren and Somekh, ICML 2013), and returns the best. Every round spends the same.
Composition polish_elites(const ReplicaGraph& replica, const DipOptions& options, std::size_t steps,
                          std::span<const Found> elites) {
  std::vector<Composition> compositions;
  for (const Found& found : elites) {
    compositions.push_back(found.composition);
  }
  const std::size_t rounds = std::bit_width(compositions.size());
  while (true) {
    parallel_for(compositions.size(), options.jobs, [&](std::size_t i) {
      Polisher(replica, options)
          .polish(compositions[i], steps / rounds / compositions.size(), options.seed);
    });
    std::ranges::stable_sort(compositions, {}, &Composition::makespan);
    if (compositions.size() == 1) {
      return std::move(compositions.front());
    }
    compositions.resize(compositions.size() / 2);
  }
}

/// Strategies for a given sequence: with memory choice those that the chooser finds, else the best
/// uniform ones. Throws Infeasible where none fit.
Composition with_strategies(const ReplicaGraph& replica, std::vector<Index> sequence,
                            const DipOptions& options) {
  const auto fits = [&](const Choice& choice) { return keeps_to_limit(replica, sequence, choice); };
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
  PassClock clock(replica);
  std::vector<Nanoseconds> durations(replica.passes.size());
  Composition best{
      .sequence = {}, .choice = {}, .makespan = std::numeric_limits<Nanoseconds>::max()};
  for (Choice& choice : possible) {
    set_durations(replica, choice, durations);
    const Nanoseconds makespan = retime(clock, sequence, durations);
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

std::size_t refine_steps(const ReplicaGraph& replica, const DipOptions& options) {
  const std::size_t passes = std::max<std::size_t>(1, replica.passes.size());
  const std::size_t more = std::min(kMoreStepsPerPass * passes, kMoreSteps / passes / passes);
  return (kStepsPerEvaluation + more) *
         static_cast<std::size_t>((1.0 - kGroupShare) * static_cast<double>(options.evaluations));
}

/// Polishes the elites, with ever other random numbers, until the budget is used up: the better
/// half of them from half of the time on, and so on, but one for every thread.
Composition polish_for_a_time(const ReplicaGraph& replica, const DipOptions& options,
                              const SearchBudget& budget, std::span<const Found> elites) {
  std::vector<Composition> compositions;
  for (const Found& found : elites) {
    compositions.push_back(found.composition);
  }
  const std::size_t jobs = options.jobs == 0 ? hardware_jobs() : options.jobs;
  double left_at_cut = (1.0 - budget.used(0)) / 2.0;
  for (std::uint64_t seed = options.seed; budget.used(0) < 1.0; ++seed) {
    if (1.0 - budget.used(0) < left_at_cut && compositions.size() > jobs) {
      compositions.resize(std::max(jobs, compositions.size() / 2));
      left_at_cut /= 2.0;
    }
    parallel_for(compositions.size(), options.jobs, [&](std::size_t i) {
      if (budget.used(0) < 1.0) {
        Polisher(replica, options).polish(compositions[i], kTimedSteps, seed);
      }
    });
    std::ranges::stable_sort(compositions, {}, &Composition::makespan);
  }
  return std::move(compositions.front());
}

/// Refines the pass order at the strategies that it has.
void refine_once(const ReplicaGraph& replica, const DipOptions& options, const SearchBudget& budget,
                 Composition& composition) {
  Refiner refiner(replica);
  if (options.time.count() == 0) {
    refiner.refine(composition, {.steps = refine_steps(replica, options), .seed = options.seed});
    return;
  }
  for (std::uint64_t seed = options.seed; budget.used(0) < 1.0; ++seed) {
    refiner.refine(composition, {.steps = kTimedSteps, .seed = seed});
  }
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
  return std::move(found.composition);
}

Composition plan_by_descent(const TaskGraph& graph, const ReplicaGraph& replica,
                            const DipOptions& options) {
  const SearchBudget all = share_of(options, 1.0);
  const SearchBudget for_groups = share_of(options, kGroupShare);
  BatchEvaluator evaluator(graph, replica, options);
  Found found = best_start(evaluator, replica);
  Elites elites(replica, kElites);
  search_locally(evaluator, replica, found, for_groups, options.seed, elites);
  found = elites.all().front();
  finish(evaluator, found);
  elites.offer(found.candidate, found.composition);
  if (options.time.count() > 0) {
    return polish_for_a_time(replica, options, all, elites.all());
  }
  return polish_elites(replica, options, refine_steps(replica, options), elites.all());
}

Composition plan_split_by_descent(const TaskGraph& graph, const ReplicaGraph& replica,
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
  std::optional<Composition> best;
  if (split_fits) {
    best = expand(replica, split, plan_by_descent(graph, split.graph, each));
  }
  if (whole_fits) {
    Composition other = expand(replica, *whole, plan_by_descent(graph, whole->graph, each));
    split_where_it_fits(replica, other);
    refine_once(replica, options, all, other);
    if (!best || other.makespan < best->makespan) {
      best = std::move(other);
    }
  }
  return *std::move(best);
}

}  // namespace dipsim::dip
