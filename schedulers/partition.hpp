// SPDX-License-Identifier: Apache-2.0
// Which consecutive layers make a stage, for schedules that treat all modules as one chain.
#pragma once

#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dipsim {

/// What is balanced over the stages.
enum class PartitionRule : std::uint8_t {
  Parameters,  ///< parameters per stage, as the interleaved Megatron baseline of DIP has it
  PassTime,    ///< F and B of a representative batch, as in nnScaler
  Given,       ///< nothing: the caller says how many layers each stage has
};

std::string_view name_of(PartitionRule rule);

/// Layers of all modules together.
int count_layers(const Problem& problem);

/// Sizes of `parts` consecutive runs of `weights` (none negative), each of at least one item.
/// Exact: the largest sum of a run is as small as possible; among those the smallest sum is as
/// large as possible; among those the sizes are lexicographically smallest (few items first).
/// Throws Input where there are fewer weights than parts.
std::vector<int> balanced_partition(std::span<const std::int64_t> weights, int parts);

/// For each run of a cut, and each item that it may begin with, where it must end at the latest
/// (the first item after it). Must not fall from one item to the next.
using RunEnds = std::vector<std::vector<std::size_t>>;

/// The same among the cuts that keep to `ends`, which has a row per run; none where there is none.
std::optional<std::vector<int>> balanced_partition(std::span<const std::int64_t> weights,
                                                   const RunEnds& ends);

/// For each layer, module after module, the time of F and B at speed 1, summed over the
/// microbatches of the batch, with the least recomputation that saves at least as much as `mode`.
std::vector<std::int64_t> layer_times(const Lowering& lowering, const Batch& batch,
                                      RecomputeMode mode);

/// For each layer, module after module, its parameters.
std::vector<std::int64_t> layer_parameters(const Problem& problem);

/// The layers of each stage when stage s takes counts[s] layers of the concatenated modules. Throws
/// Input unless there are `stages` counts of at least 1 that add up to the layers of the model.
std::vector<std::vector<LayerRange>> stage_layers(const Problem& problem,
                                                  std::span<const int> counts, int stages);

}  // namespace dipsim
