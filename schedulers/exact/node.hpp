// SPDX-License-Identifier: Apache-2.0
// A partial order: which passes are done, and when what is left can go on.
#pragma once

#include "schedulers/exact/problem.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace dipsim::exact {

/// The times of a partial order, unpacked. `earliest` is written by NodeBound.
struct State {
  explicit State(const Problem& problem)
      : rank_free(problem.ranks.size(), 0), link_free(problem.link_sender.size(), 0) {}

  Mask done = 0;        ///< passes
  Mask fillers = 0;     ///< done
  Mask released = 0;    ///< fillers whose passes are done, themselves done or not
  Nanoseconds now = 0;  ///< last start of a pass: no pass starts before it any more
  std::vector<Nanoseconds> rank_free;
  std::vector<Nanoseconds> link_free;
  std::array<Nanoseconds, kMaxPasses> arrival{};   ///< per pass: of the inputs that are done
  std::array<Nanoseconds, kMaxPasses> earliest{};  ///< per pass that is left: least start
};

/// The same packed: the sets here, the times in the arrays of the layer.
struct Node {
  Mask done = 0;
  Mask fillers = 0;
  std::size_t times = 0;  ///< where they start
  Nanoseconds bound = 0;  ///< no completion takes less
  Nanoseconds sum = 0;    ///< of the times
  Index parent = 0;       ///< its row in the layer before
  Index pass = kNone;     ///< the last one that was appended
};

/// Which times a node has. All nodes with equal `done` have the same ones, in this order:
/// rank_free, now, link_free, and the arrivals of the passes in waiting().
inline Mask waiting(const Problem& problem, Mask done) {
  Mask found = 0;
  for_each(problem.all() & ~done,
           [&](Index p) { found |= (problem.passes[p].remote & done) != 0 ? bit(p) : 0; });
  return found;
}

inline std::size_t times_per_node(const Problem& problem, Mask done) {
  return problem.ranks.size() + 1 + problem.link_sender.size() +
         static_cast<std::size_t>(std::popcount(waiting(problem, done)));
}

/// Fillers whose passes are done.
inline Mask released_fillers(const Problem& problem, Mask done) {
  Mask found = 0;
  for (Index f = 0; f < problem.fillers.size(); ++f) {
    found |= (problem.fillers[f].before & ~done) == 0 ? bit(f) : 0;
  }
  return found;
}

}  // namespace dipsim::exact
