// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/task_graph.hpp"

#include <limits>
#include <vector>

namespace dipsim {

/// How the DIP planner (arXiv 2504.14145) works. The switches are for ablations.
struct DipOptions {
  /// Sizes that the partitioner tries for a slice, in instances, ascending. The paper does not
  /// print its list, and the list is part of the result: another largest size has another best
  /// efficiency, and a finer step can stop earlier.
  std::vector<int> slice_sizes = {4, 8, 12, 16, 20, 24, 28, 32};

  /// The slice is the smallest size with at least this share of the best efficiency on the list.
  double efficiency = 0.95;

  /// Most segments per module. In any case every chunk has a layer.
  int max_segments = std::numeric_limits<int>::max();

  /// Memory levels at which the interleaver is tried: it lets a forward run ahead as long as the
  /// rank would fit if every pair used this mode. The best outcome is kept.
  std::vector<RecomputeMode> memory_levels = {RecomputeMode::Full, RecomputeMode::Selective,
                                              RecomputeMode::Keep};

  /// Most times that interleaving and memory choice follow each other, each round interleaving
  /// with the pass times that the last choice gave.
  int rounds = 3;

  /// Off: whole microbatches as slices and one segment per module.
  bool partitioner = true;

  /// Off: one strategy for all pairs, that of a memory level that fits; where none does, the most
  /// saving one of each pair.
  bool memory_choice = true;
};

/// Throws Input naming the field that is out of range.
void validate(const DipOptions& options);

}  // namespace dipsim
