// SPDX-License-Identifier: Apache-2.0
#include "models/pass_cost.hpp"

#include "models/layer_mix.hpp"
#include "sim/cluster/network_time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

namespace dipsim {

namespace {

/// How often each part of a module stands in a range of its layers.
struct PartCounts {
  int first = 0;
  std::array<int, kLayerKinds> blocks{};
  int last = 0;
};

PartCounts parts_of(const LayerRange& range, const ModuleSpec& spec) {
  PartCounts counts{.first = range.first == 0 && range.count > 0 ? 1 : 0,
                    .blocks = {},
                    .last = range.first + range.count == spec.layers && range.count > 0 ? 1 : 0};
  for (int layer = range.first; layer < range.first + range.count; ++layer) {
    ++counts.blocks[spec.kind_of(layer).index()];
  }
  return counts;
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
      f(table.of(range.module, shape), parts_of(range, module.spec));
    }
  }
}

/// Sums over the layers of a chunk, with all activations kept, and what its blocks can recompute.
/// Embeddings, projectors and heads keep what they need.
struct ChunkSum {
  double f = 0.0;
  double i = 0.0;
  double w = 0.0;
  std::int64_t kept = 0;
  std::int64_t held_for_weights = 0;
  std::vector<LayerClass> blocks;

  void add(const PartCost& cost, int count) {
    f += count * cost.f;
    i += count * cost.i;
    w += count * cost.w;
    kept += count * cost.kept;
    held_for_weights += count * cost.held_for_weights;
  }

  void add_blocks(const PartCost& cost, int count) {
    add(cost, count);
    LayerClass layers{.layers = count, .selective = {}, .full = {}};
    if (cost.cheap > 0) {
      layers.selective = {.seconds = cost.selective, .saved = cost.cheap, .rebuilt = cost.cheap};
    }
    if (const std::int64_t dropped = cost.kept - cost.layer_input; dropped > 0) {
      layers.full = {.seconds = cost.f, .saved = dropped, .rebuilt = dropped};
    }
    blocks.push_back(layers);
  }

  /// All blocks recompute in the same way.
  [[nodiscard]] Recompute uniform(Recompute LayerClass::* way) const {
    Recompute sum;
    for (const LayerClass& layers : blocks) {
      sum = sum + repeated(layers.*way, layers.layers);
    }
    return sum;
  }
};

Strategy strategy_of(const ChunkSum& sum, RecomputeMode mode, const Recompute& recompute) {
  Strategy strategy;
  strategy.mode = mode;
  strategy.f = round_to_duration(sum.f, "forward time");
  strategy.i = round_to_duration(sum.i + recompute.seconds, "backward time");
  strategy.w = round_to_duration(sum.w, "weight-gradient time");
  strategy.b = strategy.i + strategy.w;
  strategy.f_to_i = Bytes{sum.kept - recompute.saved};
  strategy.i_to_w = Bytes{sum.held_for_weights};
  strategy.rebuilt = Bytes{recompute.rebuilt};
  return strategy;
}

/// Whether `a` is nowhere worse than `b`.
bool covers(const Strategy& a, const Strategy& b) {
  return a.b <= b.b && a.f_to_i <= b.f_to_i && a.rebuilt <= b.rebuilt;
}

/// Adds a mix that no other strategy covers.
void add_mix(std::vector<Strategy>& strategies, const Strategy& mix) {
  if (std::ranges::any_of(strategies, [&](const Strategy& s) { return covers(s, mix); })) {
    return;
  }
  std::erase_if(strategies, [&](const Strategy& s) {
    return s.mode == RecomputeMode::Mixed && covers(mix, s);
  });
  strategies.push_back(mix);
}

}  // namespace

std::vector<Strategy> pass_strategies(const CostTable& table, std::span<const LayerRange> layers,
                                      const Work& work, const Batch& batch, int candidates) {
  ChunkSum sum;
  for_each_range(table, layers, work, batch, [&](const ModuleCost& cost, const PartCounts& parts) {
    sum.add(cost.first, parts.first);
    for (std::size_t kind = 0; kind < kLayerKinds; ++kind) {
      if (parts.blocks[kind] > 0) {
        sum.add_blocks(cost.blocks[kind], parts.blocks[kind]);
      }
    }
    sum.add(cost.last, parts.last);
  });
  std::vector<Strategy> strategies;
  strategies.reserve(static_cast<std::size_t>(candidates) + 3);
  strategies.push_back(strategy_of(sum, RecomputeMode::Keep, {}));
  for (const auto& [mode, way] : {std::pair(RecomputeMode::Selective, &LayerClass::selective),
                                  std::pair(RecomputeMode::Full, &LayerClass::full)}) {
    const Strategy strategy = strategy_of(sum, mode, sum.uniform(way));
    if (strategy.f_to_i < strategies.back().f_to_i) {
      strategies.push_back(strategy);
    }
  }
  if (candidates > 0 && strategies.size() > 1) {
    for (const Recompute& mix : layer_mixes(sum.blocks, candidates)) {
      add_mix(strategies, strategy_of(sum, RecomputeMode::Mixed, mix));
    }
    std::ranges::sort(strategies, {},
                      [](const Strategy& s) { return std::tuple(s.b, -s.f_to_i, s.mode); });
  }
  return strategies;
}

Bytes pass_transient(const CostTable& table, std::span<const LayerRange> layers, const Work& work,
                     const Batch& batch) {
  std::int64_t bytes = 0;
  for_each_range(table, layers, work, batch, [&](const ModuleCost& cost, const PartCounts& parts) {
    bytes = std::max(bytes, parts.first > 0 ? cost.first.transient : 0);
    for (std::size_t kind = 0; kind < kLayerKinds; ++kind) {
      bytes = std::max(bytes, parts.blocks[kind] > 0 ? cost.blocks[kind].transient : 0);
    }
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
