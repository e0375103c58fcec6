// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory_prices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dipsim::dip {

namespace {

/// After so many steps without a better bound they are halved (Held, Wolfe and Crowder,
/// Mathematical Programming 6, 1974) and start again from the best prices.
constexpr int kPatience = 10;

/// How much of the last direction goes into the next where they point apart (Camerini et al.), up
/// to all of it.
constexpr double kDeflection = 1.5;

/// Sums of doubles are exact to far less than this share of their largest term.
constexpr double kRounding = 1e-9;

}  // namespace

MemoryPrices::MemoryPrices(std::size_t pairs, std::size_t positions, std::size_t options)
    : options_(options),
      free_(positions),
      price_(positions),
      paid_(positions + 1),
      excess_(positions + 1),
      direction_(positions),
      wanted_(pairs),
      best_price_(positions) {}

void MemoryPrices::start(const MemoryProblem& problem) {
  problem_ = problem;
  pairs_ = problem.pairs.size();
  positions_ = problem.free.size();
  std::ranges::transform(problem.options, options_.begin(), [](const PairOption& option) {
    return Option{.time = static_cast<double>(option.time()),
                  .held = static_cast<double>(option.held),
                  .rebuilt = static_cast<double>(option.rebuilt),
                  .kept = static_cast<double>(option.kept)};
  });
  for (std::size_t p = 0; p < positions_; ++p) {
    free_[p] = static_cast<double>(problem.free[p]);
    price_[p] = best_price_[p] = direction_[p] = 0.0;
  }
  best_value_ = -std::numeric_limits<double>::infinity();
  bound_ = std::numeric_limits<Nanoseconds>::min();
  length_ = 1.0;
  stale_ = 0;
}

double MemoryPrices::cost(const Option& option, const Rates& rates) {
  return option.time + option.held * rates.held + option.rebuilt * rates.rebuilt +
         option.kept * rates.kept;
}

double MemoryPrices::cost(const MemoryPair& pair, Index option) const {
  return cost(options_[pair.first_option + option], rates(pair.place));
}

MemoryPrices::Rates MemoryPrices::rates(const PairPlace& place) const {
  return {.held = paid_[place.backward + 1] - paid_[place.first],
          .rebuilt = price_[place.backward],
          .kept = paid_[place.last + 1] - paid_[place.backward + 1]};
}

/// The cheapest option of a pair; adds its changes of load to excess_.
void MemoryPrices::choose(std::size_t pair) {
  const MemoryPair& of_pair = problem_.pairs[pair];
  const PairPlace& place = of_pair.place;
  const Option* options = options_.data() + of_pair.first_option;
  const Rates paid = rates(place);
  Index best = 0;
  double least = cost(options[0], paid);
  for (Index row = 1; row < of_pair.option_count; ++row) {
    const double other = cost(options[row], paid);
    best = other < least ? row : best;
    least = std::min(other, least);
  }
  value_ += least;
  wanted_[pair] = best;
  const Option& chosen = options[best];
  excess_[place.first] += chosen.held;
  excess_[place.backward] += chosen.rebuilt;
  excess_[place.backward + 1] += chosen.kept - chosen.held - chosen.rebuilt;
  excess_[place.last + 1] -= chosen.kept;
}

void MemoryPrices::evaluate() {
  double sum = 0.0;
  double priced_free = 0.0;
  for (std::size_t p = 0; p < positions_; ++p) {
    paid_[p] = sum;
    sum += price_[p];
    priced_free += price_[p] * free_[p];
    excess_[p] = 0.0;
  }
  paid_[positions_] = sum;
  excess_[positions_] = 0.0;
  value_ = 0.0;
  for (std::size_t pair = 0; pair < pairs_; ++pair) {
    choose(pair);
  }
  double load = 0.0;
  for (std::size_t p = 0; p < positions_; ++p) {
    load += excess_[p];
    excess_[p] = load - free_[p];
  }
  note_bound(priced_free);
}

void MemoryPrices::note_bound(double priced_free) {
  const double paid = value_;
  value_ -= priced_free;
  ++stale_;
  if (value_ > best_value_) {
    best_value_ = value_;
    stale_ = 0;
    std::copy_n(price_.begin(), positions_, best_price_.begin());
    // All times are whole, so the least time of a choice is.
    const double safe = value_ - kRounding * (paid + priced_free);
    bound_ = std::max(bound_, static_cast<Nanoseconds>(std::ceil(safe)));
  }
}

/// The direction of the next step; its squared length.
double MemoryPrices::deflect() {
  double across = 0.0;
  double before = 0.0;
  for (std::size_t p = 0; p < positions_; ++p) {
    if (price_[p] == 0.0) {  // it can't fall
      excess_[p] = std::max(excess_[p], 0.0);
      direction_[p] = std::max(direction_[p], 0.0);
    }
    across += excess_[p] * direction_[p];
    before += direction_[p] * direction_[p];
  }
  const double share = across < 0.0 ? std::min(-kDeflection * across / before, 1.0) : 0.0;
  const double squared = turn(share);
  // The two may cancel each other exactly; then turn() has left no direction to add.
  return squared == 0.0 && share > 0.0 ? turn(0.0) : squared;
}

/// Adds the excess to a share of the direction; the squared length of the sum.
double MemoryPrices::turn(double share) {
  double squared = 0.0;
  for (std::size_t p = 0; p < positions_; ++p) {
    direction_[p] = excess_[p] + share * direction_[p];
    squared += direction_[p] * direction_[p];
  }
  return squared;
}

bool MemoryPrices::step(Nanoseconds target) {
  if (stale_ >= kPatience) {
    stale_ = 0;
    length_ *= 0.5;
    std::copy_n(best_price_.begin(), positions_, price_.begin());
    std::fill_n(direction_.begin(), positions_, 0.0);
    evaluate();
  }
  const double squared = deflect();
  if (squared == 0.0) {
    return false;
  }
  const double length = length_ * (static_cast<double>(target) - value_) / squared;
  for (std::size_t p = 0; p < positions_; ++p) {
    price_[p] = std::max(0.0, price_[p] + length * direction_[p]);
  }
  return true;
}

}  // namespace dipsim::dip
