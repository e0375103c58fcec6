// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/polish.hpp"

#include "schedulers/dip/clock.hpp"
#include "schedulers/dip/held.hpp"
#include "schedulers/dip/memory.hpp"
#include "schedulers/dip/memory_improver.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/refine.hpp"
#include "sim/core/parallel.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dipsim::dip {

namespace {

/// Moves of the pass order that are looked at for each evaluation: as many as take about as long,
/// and so many more in small graphs that these are searched from end to end: some for every pass,
/// as far as the square of the number of passes, which a search from end to end takes, allows.
constexpr std::size_t kStepsPerEvaluation = 20;
constexpr std::size_t kMoreStepsPerPass = 60;
constexpr std::size_t kMoreSteps = 6'000'000;

/// Moves between two looks at the clock, where the budget is in time.
constexpr std::size_t kTimedSteps = 2'000;

/// Most turns of refinement and memory choice.
constexpr std::size_t kTurns = 4;

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
      refiner_.refine(next, {.steps = steps / turns_, .seed = seed + turn, .stop = options_.stop});
      if (next.makespan < best.makespan) {
        best = next;
      }
      // The order fits with its own strategies; those that hold least may rebuild or keep more.
      if (turns_ > 1 && keep_to_limit(replica_, next.sequence, most_saving_)) {
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

std::vector<Composition> compositions_of(std::span<const Found> elites) {
  std::vector<Composition> compositions;
  for (const Found& found : elites) {
    compositions.push_back(found.composition);
  }
  return compositions;
}

/// Every round of halving spends the same.
Composition polish_in_rounds(const ReplicaGraph& replica, const DipOptions& options,
                             std::size_t steps, std::span<const Found> elites) {
  std::vector<Composition> compositions = compositions_of(elites);
  const std::size_t rounds = std::bit_width(compositions.size());
  for (std::uint64_t seed = options.seed;; seed += kTurns) {
    parallel_for(compositions.size(), options.jobs, [&](std::size_t i) {
      Polisher(replica, options)
          .polish(compositions[i], steps / rounds / compositions.size(), seed);
    });
    std::ranges::stable_sort(compositions, {}, &Composition::makespan);
    if (compositions.size() == 1) {
      return std::move(compositions.front());
    }
    compositions.resize(compositions.size() / 2);
  }
}

std::size_t refine_steps(const ReplicaGraph& replica, const DipOptions& options) {
  const std::size_t passes = std::max<std::size_t>(1, replica.passes.size());
  const std::size_t more = std::min(kMoreStepsPerPass * passes, kMoreSteps / passes / passes);
  return (kStepsPerEvaluation + more) *
         static_cast<std::size_t>((1.0 - kGroupShare) * static_cast<double>(options.evaluations));
}

/// With ever other random numbers, until the budget is used up: the better half from half of the
/// time on, and so on, but one for every thread.
Composition polish_for_a_time(const ReplicaGraph& replica, const DipOptions& options,
                              const SearchBudget& budget, std::span<const Found> elites) {
  std::vector<Composition> compositions = compositions_of(elites);
  const std::size_t jobs = usable_jobs(options.jobs);
  double left_at_cut = (1.0 - budget.used(0)) / 2.0;
  for (std::uint64_t seed = options.seed; budget.used(0) < 1.0; seed += kTurns) {
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

}  // namespace

Composition polish(const ReplicaGraph& replica, const DipOptions& options, const SearchBudget& all,
                   std::span<const Found> elites) {
  Composition best =
      options.time.count() > 0
          ? polish_for_a_time(replica, options, all, elites)
          : polish_in_rounds(replica, options, refine_steps(replica, options), elites);
  improve_choice(replica, options, best);
  return best;
}

void polish_order(const ReplicaGraph& replica, const DipOptions& options, const SearchBudget& all,
                  Composition& composition) {
  Refiner refiner(replica);
  if (options.time.count() == 0) {
    refiner.refine(
        composition,
        {.steps = refine_steps(replica, options), .seed = options.seed, .stop = options.stop});
    return;
  }
  for (std::uint64_t seed = options.seed; all.used(0) < 1.0; ++seed) {
    refiner.refine(composition, {.steps = kTimedSteps, .seed = seed, .stop = options.stop});
  }
}

void improve_choice(const ReplicaGraph& replica, const DipOptions& options,
                    Composition& composition) {
  const bool searches = options.evaluations > 0 || options.time.count() > 0;
  Choice choice = composition.choice;
  if (!options.memory_choice || !searches || !has_choice(replica) ||
      !MemoryImprover(replica).improve(composition.sequence, choice)) {
    return;
  }
  const Nanoseconds makespan = makespan_of(replica, composition.sequence, choice);
  if (makespan < composition.makespan) {
    composition.choice = std::move(choice);
    composition.makespan = makespan;
  }
}

}  // namespace dipsim::dip
