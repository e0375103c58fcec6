// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory_problem.hpp"

#include <algorithm>

namespace dipsim::dip {

namespace {

/// Whether the pair never needs more after its backward than during it.
bool frees_at_backward(const MemoryProblem& problem, const MemoryPair& pair) {
  return pair.place.backward == pair.place.last ||
         std::ranges::all_of(
             problem.options.subspan(pair.first_option, pair.option_count),
             [](const PairOption& option) { return option.kept <= option.held + option.rebuilt; });
}

}  // namespace

MemoryProblem problem_of(const ReplicaGraph& replica, const PairPlaces& places, Index rank,
                         std::vector<MemoryPair>& pairs) {
  pairs.clear();
  for (const Index pair : places.pairs_of(rank)) {
    pairs.push_back({.place = places[pair],
                     .first_option = replica.first_option[pair],
                     .option_count = replica.option_count[pair]});
  }
  return {.pairs = pairs, .options = replica.options, .free = places.empty(rank)};
}

TightProblem::TightProblem(std::size_t pairs, std::size_t positions)
    : marks_(positions), frees_more_(positions), starting_(positions), rank_(positions + 1) {
  pairs_.reserve(pairs);
  free_.reserve(positions);
  by_first_.reserve(pairs);
}

void TightProblem::mark(const MemoryProblem& problem) {
  const std::size_t positions = problem.free.size();
  std::fill_n(marks_.begin(), positions, Nothing);
  std::fill_n(frees_more_.begin(), positions, 1);
  for (Index i = 0; i < problem.pairs.size(); ++i) {
    const MemoryPair& pair = problem.pairs[i];
    marks_[pair.place.first] |= Starts;
    marks_[pair.place.backward] |= Backward | Ends;
    marks_[pair.place.last] |= Ends;
    frees_more_[pair.place.backward] = frees_at_backward(problem, pair) ? 1 : 0;
    starting_[pair.place.first] = i;
  }
}

/// Whether a neighbour is at least as tight. Neighbours can't excuse each other: one needs
/// something to end at the earlier position, the other forbids it.
bool TightProblem::slack(const MemoryProblem& problem, std::size_t position) const {
  const std::span<const ByteCount> free = problem.free;
  if ((marks_[position] & Ends) == 0 && position + 1 < free.size() &&
      free[position] >= free[position + 1]) {
    return true;
  }
  return position > 0 && (marks_[position] & (Starts | Backward)) == 0 &&
         (marks_[position - 1] & Ends) != 0 && frees_more_[position - 1] != 0 &&
         free[position] >= free[position - 1];
}

const MemoryProblem& TightProblem::reduce(const MemoryProblem& problem) {
  mark(problem);
  free_.clear();
  by_first_.clear();
  for (std::size_t p = 0; p < problem.free.size(); ++p) {
    rank_[p] = static_cast<Index>(free_.size());
    if (!slack(problem, p)) {
      free_.push_back(problem.free[p]);
    }
    if ((marks_[p] & Starts) != 0) {
      by_first_.push_back(starting_[p]);
    }
  }
  rank_[problem.free.size()] = static_cast<Index>(free_.size());
  pairs_.assign(problem.pairs.begin(), problem.pairs.end());
  for (MemoryPair& pair : pairs_) {
    const PairPlace place = pair.place;
    pair.place = {.first = rank_[place.first],
                  .backward = rank_[place.backward],
                  .last = rank_[place.last + 1] - 1};
  }
  reduced_ = {.pairs = pairs_, .options = problem.options, .free = free_};
  return reduced_;
}

}  // namespace dipsim::dip
