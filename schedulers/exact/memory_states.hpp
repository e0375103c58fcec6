// SPDX-License-Identifier: Apache-2.0
// Which sets of passes can still be completed within the memory of every rank.
#pragma once

#include "schedulers/exact/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dipsim::exact {

/// What a rank holds depends only on the passes and fillers that it has done, and fillers only free
/// memory: a set of passes can be completed if and only if it can when every filler runs as soon as
/// it may. That is a search over sets alone, whatever the times; each set is looked at once.
class MemoryStates {
 public:
  /// `problem` must outlive this.
  explicit MemoryStates(const Problem& problem);

  /// Whether no order completes `done`. False also where that was not found out: once kMaxSets sets
  /// have been looked at, no further ones are.
  bool dead(Mask done) { return problem_.memory_matters && look(done) == Answer::Dead; }

  /// An order of all passes that fits, along the edges. Empty where there is none, or none was
  /// found out.
  std::vector<Index> some_order();

  /// Whether every answer so far is certain.
  [[nodiscard]] bool certain() const { return sets_ < kMaxSets; }

 private:
  enum class Answer : std::uint8_t { Unknown, Alive, Dead };

  static constexpr std::size_t kMaxSets = std::size_t{1} << 22U;

  [[nodiscard]] bool fits_next(Mask done, Index pass) const;
  [[nodiscard]] std::size_t place_of(Mask done) const;
  void remember(Mask done, Answer answer);
  Answer look(Mask done);

  const Problem& problem_;
  std::vector<Index> by_tail_;  ///< passes, those closest to the end first
  // Hash table with open addressing; its size is a power of two, a free place is Unknown.
  std::vector<Mask> keys_;
  std::vector<Answer> answers_;
  std::size_t stored_ = 0;
  std::size_t sets_ = 0;  ///< looked at
};

}  // namespace dipsim::exact
