// SPDX-License-Identifier: Apache-2.0
#include "models/pass_cost.hpp"

#include "sim/cluster/kernel_time.hpp"

#include <algorithm>
#include <array>

namespace dipsim {

namespace {

/// How often each part of a module stands in a range of its layers.
struct PartCounts {
  int first = 0;
  int block = 0;
  int last = 0;
};

PartCounts parts_of(const LayerRange& range, int layers) {
  return {.first = range.first == 0 && range.count > 0 ? 1 : 0,
          .block = range.count,
          .last = range.first + range.count == layers && range.count > 0 ? 1 : 0};
}

/// Calls f(cost of the module on this work, parts in the range) for the ranges that the work
/// passes.
template <class F>
void for_each_range(const CostTable& table, std::span<const LayerRange> layers, const Work& work,
                    const Batch& batch, const F& f) {
  for (const LayerRange& range : layers) {
    if (!work.module.valid() || work.module == range.module) {
      const PlacedModule& module = table.modules()[range.module.row()];
      const WorkShape shape = shape_of(batch, work, range.module, module.mask);
      f(table.of(range.module, shape), parts_of(range, module.spec.layers));
    }
  }
}

/// Sums over the layers of a chunk, per mode.
struct ModeSum {
  double recompute = 0.0;    ///< seconds added to I
  std::int64_t kept = 0;     ///< bytes from F to I
  std::int64_t rebuilt = 0;  ///< bytes that recomputation brings back, of one layer at a time
};

struct ChunkSum {
  double f = 0.0;
  double i = 0.0;
  double w = 0.0;
  std::int64_t held_for_weights = 0;
  std::array<ModeSum, 3> modes;  ///< Keep, Selective, Full

  void add(const PartCost& cost, int count) {
    f += count * cost.f;
    i += count * cost.i;
    w += count * cost.w;
    held_for_weights += count * cost.held_for_weights;
    for (ModeSum& mode : modes) {
      mode.kept += count * cost.kept;
    }
  }

  /// Recomputation concerns blocks only: embeddings, projectors and heads keep what they need.
  void add_blocks(const PartCost& cost, int count) {
    add(cost, count);
    ModeSum& selective = modes[1];
    selective.recompute += cost.cheap > 0 ? count * cost.selective : 0.0;
    selective.kept -= count * cost.cheap;
    selective.rebuilt = std::max(selective.rebuilt, cost.cheap);
    ModeSum& full = modes[2];
    if (cost.kept > cost.layer_input) {
      full.recompute += count * cost.f;
      full.kept -= count * (cost.kept - cost.layer_input);
      full.rebuilt = std::max(full.rebuilt, cost.kept - cost.layer_input);
    }
  }
};

Strategy strategy_of(const ChunkSum& sum, RecomputeMode mode) {
  const ModeSum& of_mode = sum.modes[static_cast<std::size_t>(mode)];
  Strategy strategy;
  strategy.mode = mode;
  strategy.f = round_to_duration(sum.f, "forward time");
  strategy.i = round_to_duration(sum.i + of_mode.recompute, "backward time");
  strategy.w = round_to_duration(sum.w, "weight-gradient time");
  strategy.b = strategy.i + strategy.w;
  strategy.f_to_i = Bytes{of_mode.kept};
  strategy.i_to_w = Bytes{sum.held_for_weights};
  strategy.rebuilt = Bytes{of_mode.rebuilt};
  return strategy;
}

}  // namespace

std::vector<Strategy> pass_strategies(const CostTable& table, std::span<const LayerRange> layers,
                                      const Work& work, const Batch& batch) {
  ChunkSum sum;
  for_each_range(table, layers, work, batch, [&](const ModuleCost& cost, const PartCounts& parts) {
    sum.add(cost.first, parts.first);
    sum.add_blocks(cost.block, parts.block);
    sum.add(cost.last, parts.last);
  });
  std::vector<Strategy> strategies{strategy_of(sum, RecomputeMode::Keep)};
  for (const RecomputeMode mode : {RecomputeMode::Selective, RecomputeMode::Full}) {
    Strategy strategy = strategy_of(sum, mode);
    if (strategy.f_to_i < strategies.back().f_to_i) {
      strategies.push_back(strategy);
    }
  }
  return strategies;
}

Bytes pass_transient(const CostTable& table, std::span<const LayerRange> layers, const Work& work,
                     const Batch& batch) {
  std::int64_t bytes = 0;
  for_each_range(table, layers, work, batch, [&](const ModuleCost& cost, const PartCounts& parts) {
    bytes = std::max(bytes, parts.first > 0 ? cost.first.transient : 0);
    bytes = std::max(bytes, parts.block > 0 ? cost.block.transient : 0);
    bytes = std::max(bytes, parts.last > 0 ? cost.last.transient : 0);
  });
  return Bytes{bytes};
}

Strategy offload_strategy(const Strategy& keep, const Cluster& cluster) {
  Strategy strategy = keep;
  strategy.mode = RecomputeMode::Offload;
  strategy.offload = keep.f_to_i;
  strategy.copy = round_to_duration(
      host_copy_seconds(cluster, static_cast<double>(keep.f_to_i.count)), "copy to host memory");
  return strategy;
}

}  // namespace dipsim
