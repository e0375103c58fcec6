// SPDX-License-Identifier: Apache-2.0
// What no completion of a partial order can beat.
#pragma once

#include "schedulers/exact/node.hpp"
#include "schedulers/exact/problem.hpp"

#include <array>

namespace dipsim::exact {

/// The larger of
///  - the longest path: earliest start + time + tail of every pass that is left;
///  - for every rank: all it has left, fillers included, one after the other as they can start; and
///  - for every rank: the preemptive schedule of its passes with these heads and tails, always
///    running the available pass with the longest tail, which is the optimum of that relaxation
///    (Jackson's rule; Carlier, The one-machine sequencing problem, EJOR 11, 1982, §2).
class NodeBound {
 public:
  explicit NodeBound(const Problem& problem) : problem_(problem) {}

  /// Also raises the times of `state` as far as that delays no completion, so that more partial
  /// orders compare: `earliest` of all passes that are left, and rank_free of ranks that can't run
  /// anything before. Stops early, with the state half raised, once the bound reaches `cutoff`.
  /// `least`: a bound on the makespan of all orders.
  Nanoseconds raise(State& state, Nanoseconds least, Nanoseconds cutoff);

 private:
  Nanoseconds longest_path(State& state);
  void raise_rank(State& state, Index rank, Nanoseconds least) const;
  void sort_by_start(const State& state, Mask passes);
  Nanoseconds load(const State& state, const RankPasses& rank, Nanoseconds free);
  Nanoseconds preemptive(const State& state, const RankPasses& rank);

  const Problem& problem_;
  Mask left_ = 0;
  std::array<Nanoseconds, kMaxPasses> rank_start_{};    ///< per rank: least start of a pass
  std::array<Index, kMaxPasses> sorted_{};              ///< passes of one rank by earliest start
  std::size_t count_ = 0;                               ///< of sorted_
  std::array<Nanoseconds, kMaxPasses> filler_start_{};  ///< of fillers not yet released, ascending
  std::array<Nanoseconds, kMaxPasses> filler_time_{};
  std::array<Nanoseconds, kMaxPasses> work_left_{};  ///< per place by tail
};

}  // namespace dipsim::exact
