// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/partition_search.hpp"

#include "schedulers/dip/balance.hpp"
#include "schedulers/dip/plan_replica.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::dip {

namespace {

constexpr int kStartSegments = 3;
constexpr std::array kRamps = {0.0, 0.5, 1.0};
constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

/// Plans that a local search compares in the end, and its evaluations for each.
constexpr std::size_t kFinalists = 6;
constexpr std::size_t kFinalEvaluations = 200;

/// Replicas that are planned before it is asked whether the plan is out of the race: a fixed
/// number, so that the answer does not depend on threads.
constexpr std::size_t kReplicasAtOnce = 8;

struct Tried {
  PartitionPlan plan;
  Nanoseconds makespan = kNever;
};

/// The work of a replica under the fastest strategies.
Nanoseconds work_of(const ReplicaGraph& replica) {
  Nanoseconds sum = 0;
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    sum += replica.options_of(pair).front().time();
  }
  return sum;
}

/// The replicas that differ, those with the most work first: the slowest one is most likely there.
std::vector<std::size_t> heaviest_first(std::span<const ReplicaGraph> replicas) {
  std::vector<std::size_t> rows = first_equal(replicas);
  std::ranges::sort(rows);
  const auto repeated = std::ranges::unique(rows);
  rows.erase(repeated.begin(), repeated.end());
  std::ranges::stable_sort(rows, std::greater{},
                           [&](std::size_t row) { return work_of(replicas[row]); });
  return rows;
}

class Search {
 public:
  Search(const Lowering& lowering, const Batch& batch, const DipOptions& options)
      : lowering_(lowering), batch_(batch), options_(options) {
    options_.soft_shares = {1.0};
  }

  PartitionPlan run() {
    const PartitionPlan rules = choose_partition(lowering_, batch_, options_);
    try_all(starts(rules));
    while (try_all(neighbours(best().plan))) {
    }
    Tried chosen = best_finalist();
    if (chosen.makespan == kNever) {
      return rules;
    }
    for (const Note& note : rules.notes) {
      chosen.plan.notes.push_back({"by rule, " + note.name, note.text});
    }
    chosen.plan.notes.push_back(
        {"search", fmt::format("{} plans on the representative iteration, best {:.1f} ms",
                               tried_.size(), static_cast<double>(chosen.makespan) * 1e-6)});
    for (std::size_t m = 0; m < chosen.plan.modules.size(); ++m) {
      chosen.plan.notes.push_back(chosen_note(m, chosen.plan.modules[m]));
    }
    return std::move(chosen.plan);
  }

 private:
  [[nodiscard]] int most_segments(std::size_t module) const {
    const Problem& problem = lowering_.problem();
    return std::min(problem.modules[module].layers / problem.depth(), options_.max_segments);
  }

  [[nodiscard]] std::vector<PartitionPlan> starts(const PartitionPlan& rules) const {
    std::vector<PartitionPlan> plans = {rules};
    for (std::size_t m = 0; m < rules.modules.size(); ++m) {
      std::vector<PartitionPlan> more;
      for (const PartitionPlan& plan : plans) {
        for (int segments = 1; segments <= std::min(kStartSegments, most_segments(m)); ++segments) {
          if (segments != plan.modules[m].segments) {
            more.push_back(plan);
            more.back().modules[m].segments = segments;
          }
        }
      }
      plans.insert(plans.end(), more.begin(), more.end());
    }
    return plans;
  }

  [[nodiscard]] std::vector<PartitionPlan> neighbours(const PartitionPlan& from) const {
    std::vector<PartitionPlan> plans;
    for (std::size_t m = 0; m < from.modules.size(); ++m) {
      const ModulePlan& module = from.modules[m];
      for (const int step : {-1, 1}) {
        if (module.segments + step >= 1 && module.segments + step <= most_segments(m)) {
          plans.push_back(from);
          plans.back().modules[m].segments += step;
        }
      }
      // A module of whole microbatches, or of one instance in each, has nothing to slice.
      for (const int size : options_.slice_sizes) {
        if (module.slice_instances > 1 && size != module.slice_instances) {
          plans.push_back(from);
          plans.back().modules[m].slice_instances = size;
        }
      }
    }
    return plans;
  }

  [[nodiscard]] const Tried& best() const {
    return *std::ranges::min_element(tried_, {}, &Tried::makespan);
  }

  /// Evaluates the plans that are new, as they are and balanced; whether one is the best so far.
  bool try_all(std::vector<PartitionPlan> plans) {
    const Nanoseconds before = tried_.empty() ? kNever : best().makespan;
    for (PartitionPlan& plan : plans) {
      for (ModulePlan& module : plan.modules) {
        module.layers.clear();
      }
    }
    const std::size_t even = plans.size();
    for (std::size_t i = 0; i < even && options_.balance; ++i) {
      for (const double ramp : kRamps) {
        PartitionPlan balanced = plans[i];
        balance_layers(lowering_, batch_, balanced, ramp);
        plans.push_back(std::move(balanced));
      }
    }
    const std::size_t first = tried_.size();
    for (PartitionPlan& plan : plans) {
      const auto same = [&](const Tried& t) { return t.plan.modules == plan.modules; };
      if (std::ranges::none_of(tried_, same)) {
        tried_.push_back({.plan = std::move(plan)});
      }
    }
    const Nanoseconds race = last_finalist();
    parallel_for(
        tried_.size() - first, options_.jobs,
        [&](std::size_t i) {
          tried_[first + i].makespan = makespan_of(tried_[first + i].plan, false, race);
          if (options_.tried) {
            options_.tried();
          }
        },
        options_.stop);
    throw_if_stopped(options_.stop);
    return best().makespan < before;
  }

  /// A plan with a longer makespan can't become a finalist any more.
  [[nodiscard]] Nanoseconds last_finalist() const {
    std::vector<Nanoseconds> makespans;
    for (const Tried& tried : tried_) {
      makespans.push_back(tried.makespan);
    }
    std::ranges::sort(makespans);
    const auto repeated = std::ranges::unique(makespans);
    makespans.erase(repeated.begin(), repeated.end());
    return makespans.size() < kFinalists ? kNever : makespans[kFinalists - 1];
  }

  /// The best of the best after a short search of each. Plans of equal makespan are most often the
  /// same slices by another name.
  [[nodiscard]] Tried best_finalist() const {
    std::vector<Tried> finalists = tried_;
    std::ranges::stable_sort(finalists, {}, &Tried::makespan);
    const auto repeated = std::ranges::unique(finalists, {}, &Tried::makespan);
    finalists.erase(repeated.begin(), repeated.end());
    finalists.resize(std::min(kFinalists, finalists.size()));
    Nanoseconds race = kNever;
    for (Tried& finalist : finalists) {
      if (finalist.makespan != kNever) {
        finalist.makespan = makespan_of(finalist.plan, true, race);
        race = std::min(race, finalist.makespan);
      }
      if (options_.tried) {
        options_.tried();
      }
    }
    return *std::ranges::min_element(finalists, {}, &Tried::makespan);
  }

  /// Of the slowest replica, after a short search or without; kNever where the plan does not fit.
  /// Where it is found to exceed `race`, no more replicas are planned, and what is returned is some
  /// makespan above it.
  [[nodiscard]] Nanoseconds makespan_of(const PartitionPlan& plan, bool searched,
                                        Nanoseconds race) const {
    const Draft draft = slice_batch(place_modules(lowering_, plan), batch_);
    const TaskGraph graph = lowering_.lower(draft, batch_);
    DipOptions options = options_;
    options.evaluations = searched ? kFinalEvaluations : 0;
    if (!searched) {
      options.whole_microbatches = {false};
    }
    options.time = std::chrono::milliseconds{0};
    const std::vector<ReplicaGraph> replicas = replica_graphs(graph);
    const std::vector<std::size_t> rows = heaviest_first(replicas);
    Nanoseconds slowest = 0;
    for (std::size_t first = 0; first < rows.size() && slowest <= race; first += kReplicasAtOnce) {
      std::array<Nanoseconds, kReplicasAtOnce> makespans{};
      parallel_for(
          std::min(kReplicasAtOnce, rows.size() - first), options.jobs,
          [&](std::size_t i) {
            makespans[i] = makespan_of(graph, replicas[rows[first + i]], options);
          },
          options.stop);
      throw_if_stopped(options.stop);
      slowest = std::max(slowest, std::ranges::max(makespans));
    }
    return slowest;
  }

  /// kNever where the replica does not fit.
  static Nanoseconds makespan_of(const TaskGraph& graph, const ReplicaGraph& replica,
                                 const DipOptions& options) {
    try {
      return plan_by_descent(graph, replica, options).makespan;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Infeasible) {
        throw;
      }
      return kNever;
    }
  }

  [[nodiscard]] Note chosen_note(std::size_t m, const ModulePlan& module) const {
    std::string text = fmt::format("B {}, K {}", module.slice_instances, module.segments);
    if (!module.layers.empty()) {
      text += ", layers per chunk";
      for (const int layers : module.layers) {
        text += fmt::format(" {}", layers);
      }
    }
    return {"chosen " + lowering_.problem().modules[m].name, text};
  }

  const Lowering& lowering_;
  const Batch& batch_;
  DipOptions options_;
  std::vector<Tried> tried_;
};

}  // namespace

PartitionPlan search_partition(const Lowering& lowering, const Batch& representative,
                               const DipOptions& options) {
  if (!options.partitioner) {
    return choose_partition(lowering, representative, options);  // nothing to search
  }
  return Search(lowering, representative, options).run();
}

}  // namespace dipsim::dip
