// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/task_graph.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <vector>

namespace dipsim {

/// The ordering search of the paper (schedulers/dip/tree_search.hpp).
struct TreeSearchOptions {
  double alpha = 2.0;
  double beta = 0.02;
  std::size_t rollouts = 8;  ///< completions per new node
  std::size_t leaves = 4;    ///< new nodes that are evaluated at once
  bool uniform_rollouts = false;
  bool separate_backwards = false;
};

/// How the DIP planner (arXiv 2504.14145) works. The switches are for ablations.
struct DipOptions {
  /// Sizes that the partitioner tries for a slice, in instances, ascending. The paper does not
  /// print its list, and the list is part of the result: another largest size has another best
  /// efficiency, and a finer step can stop earlier.
  std::vector<int> slice_sizes = {4, 8, 12, 16, 20, 24, 28, 32};

  /// The slice is the smallest size with at least this share of the best efficiency on the list.
  double efficiency = 0.95;

  /// Whether layers may be moved between ranks to even out their work (dip-plus, dip-zb).
  bool balance = true;

  /// Most segments per module. In any case every chunk has a layer.
  int max_segments = std::numeric_limits<int>::max();

  /// Memory levels at which the interleaver is tried: it lets a forward run ahead as long as the
  /// rank would fit if every pair used this mode. The best outcome is kept.
  std::vector<RecomputeMode> memory_levels = {RecomputeMode::Full, RecomputeMode::Selective,
                                              RecomputeMode::Keep};

  /// Shares of the room that a memory level may fill: values tried. Below 1, forwards run less far
  /// ahead than memory would let them. Empty: the planner's own; 1 outside of planners.
  std::vector<double> soft_shares{};

  /// Whether a microbatch begins only where all that its forwards hold has room, at the memory
  /// level, beside those that have begun: values tried. At tight memory a rank then waits for the
  /// microbatch in progress instead of filling up with the beginnings of others. Empty: the
  /// planner's own; false outside of planners.
  std::vector<bool> whole_microbatches{};

  /// Most weight passes that may wait on a rank, where the backward is split: values tried.
  std::vector<int> weight_backlogs = {1, 2, 4, std::numeric_limits<int>::max()};

  /// Most times that interleaving and memory choice follow each other, each round interleaving
  /// with the pass times that the last choice gave.
  int rounds = 3;

  /// What a search may spend on one iteration: compositions of a group order.
  std::size_t evaluations = 1'000;

  /// Where positive: a budget in time instead, which is not reproducible.
  std::chrono::milliseconds time{0};

  std::uint64_t seed = 1;  ///< of every random choice

  TreeSearchOptions tree;

  std::size_t jobs = 0;  ///< threads; 0: all cores. The plan does not depend on it.

  // As in PlanControl (sim/graph/planner.hpp).
  std::stop_token stop{};
  std::function<void(std::size_t)> planned{};
  std::function<void()> tried{};

  /// Off: whole microbatches as slices and one segment per module.
  bool partitioner = true;

  /// Off: Megatron's order on DIP's chunks (schedulers/dip/fixed_order.hpp), and so no search.
  bool interleaver = true;

  /// Whether activations go to host memory behind the search, where that spares recomputation.
  /// Empty: the planner's own, which is off for `dip` as the paper has it, and on for the others.
  std::optional<bool> offload{};

  /// Off: one strategy for all pairs, that of a memory level that fits; where none does, the most
  /// saving one of each pair.
  bool memory_choice = true;
};

/// Throws Input naming the field that is out of range.
void validate(const DipOptions& options);

}  // namespace dipsim
