// SPDX-License-Identifier: Apache-2.0
// A task graph at fixed strategies in flat arrays of at most 64 passes, so that a set of passes is
// one word.
#pragma once

#include "sim/core/ids.hpp"
#include "sim/core/rows.hpp"
#include "sim/graph/task_graph.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dipsim::exact {

using Index = std::uint32_t;
using Nanoseconds = std::int64_t;
using ByteCount = std::int64_t;

/// A set of passes, or of fillers.
using Mask = std::uint64_t;

inline constexpr std::size_t kMaxPasses = 64;
inline constexpr Index kNone = ~Index{0};

constexpr Mask bit(Index i) { return Mask{1} << i; }

constexpr bool has(Mask mask, Index i) { return ((mask >> i) & 1U) != 0; }

/// The least member of a set that is not empty.
constexpr Index first_of(Mask mask) { return static_cast<Index>(std::countr_zero(mask)); }

/// Calls body(i) for every member, ascending.
template <class Body>
constexpr void for_each(Mask mask, const Body& body) {
  for (; mask != 0; mask &= mask - 1) {
    body(first_of(mask));
  }
}

/// A pass that has a place in the search.
struct Pass {
  TaskId task;
  Index rank = 0;
  Nanoseconds time = 0;
  Nanoseconds tail = 0;  ///< least time from its end to the end of the last pass
  Mask before = 0;       ///< passes that it waits for
  Mask remote = 0;       ///< those of them whose result comes from another rank or over a link
  Mask feeds = 0;        ///< passes to which its own result goes that way
  ByteCount needs = 0;   ///< bytes on top of what its rank holds, while it runs or right after
  ByteCount change = 0;  ///< of what its rank holds, once it has ended
};

/// A W that nobody waits for and that waits for passes of its own rank only. It may run at any
/// time after those and matters to its rank alone.
struct Filler {
  TaskId task;
  Index rank = 0;
  Nanoseconds time = 0;  ///< above 0
  Mask before = 0;       ///< passes
  ByteCount frees = 0;
};

/// The result of a pass reaches another pass over a link, or at once.
struct Delivery {
  Index link = kNone;        ///< queue of the transfer; none: an edge between ranks
  Nanoseconds occupied = 0;  ///< of the link
  Nanoseconds latency = 0;
  Index target = kNone;   ///< none: nobody that has a place in the search waits for it
  bool repeated = false;  ///< the same transfer as the delivery before this one
};

/// A pass starts no earlier than `delay` after the end of `from`.
struct Input {
  Index from = 0;
  Nanoseconds delay = 0;
};

struct RankPasses {
  RankId rank;
  Mask passes = 0;
  Mask fillers = 0;            ///< in descending order of time
  ByteCount room = 0;          ///< memory limit less what it holds all the time
  std::vector<Index> by_tail;  ///< its passes, the longest tail first
};

struct Problem {
  std::vector<Pass> passes;                       ///< topologically ordered
  std::vector<Filler> fillers;                    ///< rank by rank
  std::vector<RankPasses> ranks;                  ///< those that have passes
  Rows<Delivery> deliveries;                      ///< per pass, in the order in which they leave
  Rows<Input> inputs;                             ///< per pass
  std::vector<Index> link_sender;                 ///< per link that transfers occupy: rank
  std::array<Index, kMaxPasses> place_by_tail{};  ///< per pass: its place in RankPasses::by_tail
  bool memory_matters = false;                    ///< some rank can't hold everything at once

  [[nodiscard]] Mask all() const {
    return passes.size() == kMaxPasses ? ~Mask{0} : bit(static_cast<Index>(passes.size())) - 1;
  }
};

/// Throws Input and Infeasible as solve_exact() says, as far as graph and choices are concerned;
/// of Infeasible only where a rank has no room for what it holds all the time.
Problem make_problem(const TaskGraph& graph, std::span<const StrategyId> chosen);

}  // namespace dipsim::exact
