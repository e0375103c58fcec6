// SPDX-License-Identifier: Apache-2.0
// The Lagrangian relaxation of the memory choice: prices per position in place of limits.
#pragma once

#include "schedulers/dip/memory_problem.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Prices per position and byte. At given prices every pair chooses for itself, and the sum of what
/// they pay less the price of all free bytes is a lower bound on the time of any choice that fits
/// (Geoffrion, Mathematical Programming Study 2, 1974). Deflected subgradient steps (Camerini,
/// Fratta and Maffioli, Mathematical Programming Study 3, 1975) raise it. Not thread-safe; no
/// allocation after construction.
class MemoryPrices {
 public:
  MemoryPrices(std::size_t pairs, std::size_t positions, std::size_t options);

  /// Starts at zero prices. `problem` must outlive the next calls.
  void start(const MemoryProblem& problem);

  /// What the pairs choose at the present prices, and the bound.
  void evaluate();

  /// Moves the prices towards a bound of `target`. False when they are the best ones.
  bool step(Nanoseconds target);

  /// The best bound so far.
  [[nodiscard]] Nanoseconds bound() const { return bound_; }

  /// Per pair: the cheapest option at the present prices.
  [[nodiscard]] std::span<const Index> wanted() const { return {wanted_.data(), pairs_}; }

  /// Time of an option and the price of what it holds.
  [[nodiscard]] double cost(const MemoryPair& pair, Index option) const;

 private:
  /// What the inner loop needs of an option, in nanoseconds and bytes.
  struct Option {
    double time = 0.0;
    double held = 0.0;
    double rebuilt = 0.0;
    double kept = 0.0;
  };

  /// What a pair pays per byte.
  struct Rates {
    double held = 0.0;
    double rebuilt = 0.0;
    double kept = 0.0;
  };

  static double cost(const Option& option, const Rates& rates);
  [[nodiscard]] Rates rates(const PairPlace& place) const;
  void choose(std::size_t pair);
  void note_bound(double priced_free);
  double deflect();
  double turn(double share);

  MemoryProblem problem_;
  std::size_t pairs_ = 0;
  std::size_t positions_ = 0;
  std::vector<Option> options_;
  std::vector<double> free_;  ///< per position, as are the next four and best_price_
  std::vector<double> price_;
  std::vector<double> paid_;       ///< sum of the prices before it
  std::vector<double> excess_;     ///< bytes that the wanted options lack
  std::vector<double> direction_;  ///< in which the prices move
  std::vector<Index> wanted_;
  std::vector<double> best_price_;
  double value_ = 0.0;       ///< bound at the present prices
  double best_value_ = 0.0;  ///< at best_price_
  Nanoseconds bound_ = 0;
  double length_ = 1.0;  ///< of a step, in parts of the way to the target
  int stale_ = 0;        ///< steps since the bound has risen
};

}  // namespace dipsim::dip
