// SPDX-License-Identifier: Apache-2.0
// Items of several kinds of work, dealt to bins as evenly as their limits allow.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace dipsim {

/// What an item takes of each limit of a bin, and those limits.
using Sizes = std::array<double, 4>;

struct DealProblem {
  std::size_t bins = 1;
  std::size_t kinds = 1;     ///< of work; work of different kinds is in the same unit
  std::vector<double> work;  ///< item * kinds + kind, from 0
  std::vector<Sizes> sizes;  ///< per item, from 0
  Sizes limits{};            ///< of the items of one bin together, per bin

  [[nodiscard]] std::size_t items() const { return sizes.size(); }
};

/// The bin of each item.
using Deal = std::vector<std::size_t>;

/// How far the bins are from even shares.
struct Unevenness {
  double deviation = 0.0;  ///< √(Σ over bins and kinds (work − mean)² / bins) / mean of all kinds
  double peak = 1.0;       ///< most work of a bin, all kinds together, over the mean
};

Unevenness unevenness(const DealProblem& problem, const Deal& deal);

/// A deal within the limits with no greater deviation than `start`, which must be within them, and
/// no more empty bins. Starts from the longest-processing-time rule (Graham 1969: heaviest item
/// first, here to the bin where it adds least to Σ work²) where that is within the limits and
/// better than `start`, else from `start`; then moves single items and swaps two, the best of each
/// pair of bins, until nothing helps. Equal inputs give equal deals.
Deal improve_deal(const DealProblem& problem, const Deal& start);

}  // namespace dipsim
