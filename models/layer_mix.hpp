// SPDX-License-Identifier: Apache-2.0
// Which layers of a chunk recompute: few mixes that stand for all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dipsim {

/// What some layers of a chunk cost and save by recomputing in the backward, per GPU.
struct Recompute {
  double seconds = 0.0;
  std::int64_t saved = 0;    ///< bytes less between forward and backward
  std::int64_t rebuilt = 0;  ///< bytes that recomputation brings back, of one layer at a time
  friend bool operator==(const Recompute&, const Recompute&) = default;
};

/// Layers of equal cost; each keeps everything, or recomputes in one of two ways. A way that saves
/// nothing is none.
struct LayerClass {
  int layers = 0;
  Recompute selective;  ///< of one layer
  Recompute full;
};

/// `layers` layers that recompute alike.
Recompute repeated(const Recompute& layer, int layers);

/// Two sets of layers of one chunk. Layers are rebuilt one after the other, so of what they bring
/// back only the largest counts.
Recompute operator+(const Recompute& a, const Recompute& b);

/// At most `candidates` (>= 2) ways to distribute the two kinds of recomputation over the layers,
/// fastest first: the fastest (nothing recomputes); the one that holds least; and the memory
/// between these two cut into candidates - 2 equal buckets, the fastest of each (arXiv 2504.14145,
/// level 3 of the schedule searcher). None that another beats in both time and memory. Exact: a
/// multiple-choice knapsack over counts of equal layers, classes joined by their Pareto fronts
/// (Nemhauser and Ullmann, Management Science 15(9), 1969).
std::vector<Recompute> layer_mixes(std::span<const LayerClass> classes, int candidates);

}  // namespace dipsim
