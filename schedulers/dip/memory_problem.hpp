// SPDX-License-Identifier: Apache-2.0
// The choice of strategies on one rank as a problem of its own: intervals, options, limits.
#pragma once

#include "schedulers/dip/pair_bytes.hpp"
#include "schedulers/dip/pair_places.hpp"
#include "schedulers/dip/replica_graph.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::dip {

/// A pair and its options.
struct MemoryPair {
  PairPlace place;
  Index first_option = 0;
  Index option_count = 0;
};

/// One rank, its order fixed. Choose an option per pair so that at every position the bytes of all
/// pairs (bytes_of their options) fit, and the sum of PairOption::time() is least. This is the
/// integer program of arXiv 2504.14145 (level 3 of the schedule searcher), where only `held`
/// counts. No two passes stand at one position.
struct MemoryProblem {
  std::span<const MemoryPair> pairs;
  std::span<const PairOption> options;
  std::span<const ByteCount> free;  ///< per position, before any pair holds anything
};

/// The problem of one rank at these places; `pairs` is overwritten and must outlive the result.
/// Pairs stand in the order of PairPlaces::pairs_of().
MemoryProblem problem_of(const ReplicaGraph& replica, const PairPlaces& places, Index rank,
                         std::vector<MemoryPair>& pairs);

/// A problem without the positions at which no choice needs more than at a neighbour that has no
/// more free bytes: forwards before another pass, W behind another pass that frees more. Whether a
/// choice fits is the same.
class TightProblem {
 public:
  TightProblem(std::size_t pairs, std::size_t positions);

  /// The spans of the result hold until the next call, that of the options as long as the given
  /// one.
  const MemoryProblem& reduce(const MemoryProblem& problem);

  /// Pairs in the order of their forwards.
  [[nodiscard]] std::span<const Index> by_first() const { return by_first_; }

 private:
  enum Mark : std::uint8_t { Nothing = 0, Starts = 1, Backward = 2, Ends = 4 };

  void mark(const MemoryProblem& problem);
  [[nodiscard]] bool slack(const MemoryProblem& problem, std::size_t position) const;

  std::vector<std::uint8_t> marks_;       ///< per position: what pairs do there
  std::vector<std::uint8_t> frees_more_;  ///< per position: no option of a pair whose backward this
                                          ///< is needs more behind it
  std::vector<Index> starting_;           ///< per position: the pair that starts there
  std::vector<Index> rank_;               ///< per position: those before it that stay
  std::vector<MemoryPair> pairs_;
  std::vector<ByteCount> free_;
  std::vector<Index> by_first_;
  MemoryProblem reduced_;
};

}  // namespace dipsim::dip
