// SPDX-License-Identifier: Apache-2.0
// The partial orders of one length, and which of them need not be looked at.
#pragma once

#include "schedulers/exact/node.hpp"
#include "schedulers/exact/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dipsim::exact {

/// Nodes with their times in flat arrays, which grow to what is needed and are then used again.
struct Layer {
  std::vector<Node> nodes;
  std::vector<Nanoseconds> times;

  void clear() {
    nodes.clear();
    times.clear();
  }

  void add(const Node& node, std::span<const Nanoseconds> node_times);

  [[nodiscard]] const Nanoseconds* times_of(const Node& node) const {
    return times.data() + node.times;
  }
};

/// Ranks that may still become full: what `done` holds without any filler run, plus all that the
/// passes left may add, exceeds the room. Bit r: rank r. On all others memory no longer matters,
/// whatever the order.
Mask tight_ranks(const Problem& problem, Mask done);

/// Drops nodes that others dominate.
///
/// A dominates B (equal sets of passes done) when
///  - each rank of A can first run the fillers that it is behind, and still is free no later than
///    that of B. It is behind with the fillers that are left to A but not to B; where memory can no
///    longer matter, a filler left to B makes up for one that is left to A and no longer;
///  - no link of A is free later, no input arrives later, and its last start is not later.
/// Then every completion of B can be followed from A, pass by pass, with no start later: each rank
/// runs what it is behind before its next pass, and skips (or swaps) fillers already done. Memory
/// allows it, as A then never holds more than B. So dropping B loses no makespan, and the relation
/// is transitive: it does not matter that A may be dropped for another one.
class Dominance {
 public:
  explicit Dominance(const Problem& problem) : problem_(problem) {}

  /// Leaves `layer` sorted by set, without dominated nodes and without those whose bound reaches
  /// `cutoff`. Deterministic.
  void filter(Layer& layer, Nanoseconds cutoff);

 private:
  [[nodiscard]] bool dominates(const Layer& layer_a, const Node& a, const Layer& layer_b,
                               const Node& b) const;
  [[nodiscard]] Nanoseconds behind(Index rank, Mask fillers_a, Mask fillers_b) const;

  const Problem& problem_;
  Mask tight_ = 0;          ///< of the set of passes at hand
  std::size_t length_ = 0;  ///< times per node
  std::vector<std::uint32_t> order_;
  Layer kept_;
};

/// Keeps the `width` nodes with the least bound (then the least sum of times, then the first ones)
/// in their order. Returns the least bound among those dropped; the largest value if there are
/// none.
Nanoseconds narrow(Layer& layer, std::size_t width);

}  // namespace dipsim::exact
