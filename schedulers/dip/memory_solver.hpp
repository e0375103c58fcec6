// SPDX-License-Identifier: Apache-2.0
// The memory choice of one rank with a proof of how far it is from the best one.
#pragma once

#include "schedulers/dip/memory_prices.hpp"
#include "schedulers/dip/memory_problem.hpp"
#include "schedulers/dip/memory_repair.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// How good a choice is proved to be.
struct MemoryProof {
  Nanoseconds time = 0;     ///< of the choice
  Nanoseconds bound = 0;    ///< no choice that fits takes less
  Nanoseconds fastest = 0;  ///< with the fastest option of every pair, whether they fit or not
  int iterations = 0;       ///< prices tried

  /// Share of the time of all passes by which a better choice could be faster, at most.
  [[nodiscard]] double gap() const;

  /// The same as a share of what the choice costs beyond the fastest options: of recomputation.
  [[nodiscard]] double recompute_gap() const;
};

struct MemoryEffort {
  double gap = 0.05;     ///< MemoryProof::gap() that is good enough (arXiv 2504.14145)
  int iterations = 150;  ///< prices to try, at most
};

/// Prices (MemoryPrices) give the bound; what the pairs choose at good prices nearly fits, and
/// repaired and filled up (MemoryRepair) it gives the answers. Deterministic. Not thread-safe; no
/// allocation after construction.
class MemorySolver {
 public:
  /// The largest problem that solve() will be given.
  MemorySolver(std::size_t pairs, std::size_t positions, std::size_t options);

  /// `choice`: rows of options, relative to first_option; on entry one that fits, on return the
  /// best one found.
  MemoryProof solve(const MemoryProblem& problem, std::span<Index> choice,
                    const MemoryEffort& effort = {});

 private:
  void answer(const MemoryProblem& problem, std::span<Index> choice, MemoryProof& proof);

  TightProblem tight_;
  MemoryPrices prices_;
  MemoryRepair repair_;
  std::vector<Index> trial_;
};

/// Sum of the times of all pairs under a choice.
Nanoseconds time_of(const MemoryProblem& problem, std::span<const Index> choice);

}  // namespace dipsim::dip
