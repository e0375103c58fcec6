// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/local_search.hpp"

#include "sim/core/random.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace dipsim::dip {

namespace {

/// Temperatures as shares of the makespan that the search starts from.
constexpr double kHot = 0.002;
constexpr double kCold = 0.00005;

/// How often a group moves to one of the ends.
constexpr double kToEnd = 0.15;

/// How often a change concerns the way of composing and not the order.
constexpr double kWayChange = 0.04;

/// Draws changes of a candidate.
class Changer {
 public:
  Changer(const ReplicaGraph& replica, std::span<const Way> ways)
      : replica_(replica), ways_(ways) {}

  /// The `index`-th change of a search.
  void change(Candidate& candidate, std::uint64_t seed, std::size_t index) {
    random_ = RandomStream(seed, "order change", index);
    const std::size_t groups = candidate.order.forward.size();
    if (ways_.size() > 1 && (groups < 2 || random_.uniform() < kWayChange)) {
      candidate.way = ways_[draw(ways_.size())];
    }
    if (groups < 2) {
      return;
    }
    switch (draw(8)) {
      case 0:
        shift(candidate.order.forward);
        break;
      case 1:
        shift(candidate.order.backward);
        break;
      case 2:
        swap(draw(2) == 0 ? candidate.order.forward : candidate.order.backward);
        break;
      case 3:
      case 4:
        shift_both(candidate.order);
        break;
      case 5:
        shift_microbatch(candidate.order.forward, draw(groups), draw(groups));
        break;
      case 6:
        shift_microbatch(candidate.order.backward, draw(groups), draw(groups));
        break;
      default:
        shift_microbatches(candidate.order);
    }
  }

 private:
  std::size_t draw(std::size_t count) {
    return static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(count) - 1));
  }

  /// Another place: one of the ends, where the pipeline fills and drains, or a log-uniform distance
  /// away.
  std::size_t other_place(std::size_t from, std::size_t count) {
    if (random_.uniform() < kToEnd) {
      return draw(2) == 0 ? 0 : count - 1;
    }
    const double reach = std::pow(static_cast<double>(count - 1), random_.uniform());
    const auto distance = static_cast<std::size_t>(reach);
    const bool up = random_.uniform() < 0.5;
    if ((up && from + distance < count) || from < distance) {
      return std::min(from + distance, count - 1);
    }
    return from - distance;
  }

  static void move(std::vector<Index>& order, std::size_t from, std::size_t to) {
    const auto begin = order.begin();
    const auto at = [&](std::size_t place) { return begin + static_cast<std::ptrdiff_t>(place); };
    if (from < to) {
      std::rotate(at(from), at(from + 1), at(to + 1));
    } else {
      std::rotate(at(to), at(from), at(from + 1));
    }
  }

  void shift(std::vector<Index>& order) {
    const std::size_t from = draw(order.size());
    move(order, from, other_place(from, order.size()));
  }

  void swap(std::vector<Index>& order) {
    const std::size_t a = draw(order.size());
    std::swap(order[a], order[other_place(a, order.size())]);
  }

  /// The same group, by the same distance, in both directions.
  void shift_both(GroupOrder& order) {
    const std::size_t count = order.forward.size();
    const std::size_t from = draw(count);
    const std::size_t to = other_place(from, count);
    const Index group = order.forward[from];
    move(order.forward, from, to);
    const auto found = std::ranges::find(order.backward, group);
    const auto at = static_cast<std::size_t>(found - order.backward.begin());
    const std::size_t target = at + to < from ? 0 : std::min(at + to - from, count - 1);
    move(order.backward, at, target);
  }

  /// All groups of the microbatch of the group at `from` go to the group at `to`, in their order.
  void shift_microbatch(std::vector<Index>& order, std::size_t from, std::size_t to) {
    const MicrobatchId moved = replica_.groups[order[from]].microbatch;
    const auto belongs = [&](Index group) { return replica_.groups[group].microbatch == moved; };
    const Index target = order[to];
    if (belongs(target)) {
      return;
    }
    groups_.clear();
    std::ranges::copy_if(order, std::back_inserter(groups_), belongs);
    std::erase_if(order, belongs);
    const auto place = std::ranges::find(order, target) + (from < to ? 1 : 0);
    order.insert(place, groups_.begin(), groups_.end());
  }

  void shift_microbatches(GroupOrder& order) {
    const std::size_t count = order.forward.size();
    const std::size_t from = draw(count);
    const std::size_t to = draw(2) == 0 ? other_place(from, count) : draw(count);
    const Index moved = order.forward[from];
    const Index target = order.forward[to];
    shift_microbatch(order.forward, from, to);
    const auto at = [&](Index group) {
      return static_cast<std::size_t>(std::ranges::find(order.backward, group) -
                                      order.backward.begin());
    };
    shift_microbatch(order.backward, at(moved), at(target));
  }

  const ReplicaGraph& replica_;
  std::span<const Way> ways_;
  RandomStream random_{0, "order change"};
  std::vector<Index> groups_;
};

/// Metropolis' rule.
bool accept(Nanoseconds worse, double temperature, std::uint64_t seed, std::size_t index) {
  return worse <= 0 || static_cast<double>(worse) <
                           RandomStream(seed, "acceptance", index).exponential(temperature);
}

}  // namespace

void search_locally(BatchEvaluator& evaluator, const ReplicaGraph& replica, const Found& start,
                    const SearchBudget& budget, std::uint64_t seed, Elites& elites) {
  Changer changer(replica, evaluator.ways());
  elites.offer(start.candidate, start.composition);
  Found current = start;
  std::vector<Candidate> candidates;
  const double scale = static_cast<double>(start.composition.makespan);
  const auto temperature = [&](std::size_t index) {
    return scale * kHot * std::pow(kCold / kHot, budget.used(index));
  };
  for (std::size_t spent = 0; budget.used(spent) < 1.0;) {
    candidates.clear();
    do {
      candidates.push_back(current.candidate);
      changer.change(candidates.back(), seed, spent + candidates.size() - 1);
    } while (candidates.size() < evaluator.jobs() && budget.used(spent + candidates.size()) < 1.0);
    const auto results = evaluator.compose_once(candidates, current.composition.choice);
    std::size_t taken = 0;
    while (taken < results.size() && !accept(results[taken].makespan - current.composition.makespan,
                                             temperature(spent + taken), seed, spent + taken)) {
      ++taken;
    }
    const std::size_t counted = std::min(taken + 1, results.size());
    for (std::size_t i = 0; i < counted; ++i) {
      elites.offer(candidates[i], results[i]);
    }
    spent += counted;
    if (taken < results.size()) {
      current = {.candidate = candidates[taken], .composition = results[taken]};
    }
  }
}

}  // namespace dipsim::dip
