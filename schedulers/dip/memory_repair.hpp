// SPDX-License-Identifier: Apache-2.0
// Makes a memory choice fit, and uses the room that is left.
#pragma once

#include "schedulers/dip/memory_prices.hpp"
#include "schedulers/dip/memory_problem.hpp"
#include "schedulers/dip/range_slack.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Turns what pairs want at some prices into a choice that fits. Not thread-safe; no allocation
/// after construction.
class MemoryRepair {
 public:
  MemoryRepair(std::size_t pairs, std::size_t positions);

  /// From the first position to the last: while bytes are missing, the pair that loses least per
  /// missing byte, at these prices, takes an option that holds less. False where no such option
  /// helps. `by_first`: pairs in the order of their forwards.
  bool fit(const MemoryProblem& problem, std::span<const Index> by_first,
           const MemoryPrices& prices, std::span<Index> choice);

  /// Pair by pair, by forward: the fastest option that the room left allows. `choice` must fit.
  void fill(const MemoryProblem& problem, std::span<const Index> by_first, std::span<Index> choice);

 private:
  /// A change of option that frees bytes at the position in progress.
  struct Relief {
    Index pair = 0;
    Index option = 0;
    ByteCount bytes = 0;
    double loss = 0.0;  ///< per missing byte
  };

  void load(const MemoryProblem& problem, std::span<const Index> choice);
  void retire(Index position);
  [[nodiscard]] Relief best_relief(Index position, ByteCount missing, const MemoryPrices& prices,
                                   std::span<const Index> choice) const;
  void relieve(Index position, const Relief& relief, std::span<Index> choice);

  MemoryProblem problem_;
  std::vector<ByteCount> change_;  ///< per position, and the end: of the load
  std::vector<Index> active_;      ///< pairs that hold something
  RangeSlack slack_;
};

}  // namespace dipsim::dip
