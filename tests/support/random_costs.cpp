// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_costs.hpp"

#include "tests/support/work_tokens.hpp"

#include <algorithm>
#include <utility>

namespace dipsim::test {

namespace {

constexpr Bytes kAmple{std::int64_t{1} << 50};

/// What `layers` of the chunk recompute: all or a part of them.
struct Recomputed {
  RecomputeMode mode = RecomputeMode::Keep;
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
};

}  // namespace

RandomCosts::RandomCosts(Numbers numbers) : numbers_(std::move(numbers)) {
  problem_.modules = numbers_.shapes;
  problem_.replicas = numbers_.replicas;
  const int depth = static_cast<int>(numbers_.speeds.size()) / numbers_.replicas;
  for (std::size_t r = 0; r < numbers_.speeds.size(); ++r) {
    const GpuId gpu(r);
    problem_.cells.add_row(std::span(&gpu, 1));
    Rank rank;
    rank.replica = static_cast<int>(r) / depth;
    rank.position = static_cast<int>(r) % depth;
    rank.cells = {CellId(r)};
    rank.memory_limit = kAmple;
    rank.reserved = numbers_.reserved;
    rank.speed = numbers_.speeds[r];
    problem_.ranks.push_back(rank);
  }
  for (const ModuleShape& shape : numbers_.shapes) {
    backward_.push_back(shape.trained || std::ranges::any_of(shape.inputs, [&](ModuleId input) {
                          return backward_[input.row()];
                        }));
  }
}

void RandomCosts::set_limits(std::span<const Bytes> limits) {
  for (std::size_t r = 0; r < limits.size(); ++r) {
    problem_.ranks[r].memory_limit = limits[r];
  }
}

ChunkMemory RandomCosts::memory(std::span<const LayerRange> layers) const {
  ChunkMemory memory;
  for (const LayerRange& range : layers) {
    const RandomModule& module = numbers_.modules[range.module.row()];
    const Bytes weights{range.count * module.weights};
    memory.weights += weights;
    memory.gradients += module.trained ? weights : Bytes{};
    memory.optimizer += module.trained ? 3 * weights : Bytes{};
  }
  return memory;
}

std::vector<Strategy> RandomCosts::strategies(std::span<const LayerRange> layers, const Work& work,
                                              const Batch& batch) const {
  std::vector<Recomputed> ways = {{}};
  if (numbers_.selective) {
    ways.push_back({RecomputeMode::Selective, 1, 2});
  }
  if (numbers_.full) {
    ways.push_back({RecomputeMode::Full, 1, 1});
  }
  std::vector<Strategy> strategies;
  for (const Recomputed& way : ways) {
    Strategy& s = strategies.emplace_back();
    s.mode = way.mode;
    for (const LayerRange& range : layers) {
      const RandomModule& module = numbers_.modules[range.module.row()];
      const std::int64_t here = work_tokens(work, range.module, batch);
      const bool last = range.first + range.count == problem_.modules[range.module.row()].layers;
      const auto time = [&](std::int64_t per_token) {
        return Duration{range.count * (module.launch + here * per_token) +
                        (last ? here * module.head : 0)};
      };
      const Duration forward = time(module.f);
      const Bytes all{range.count * here * module.held};
      const Bytes saved{range.count * here * (module.held - module.input) * way.numerator /
                        way.denominator};
      s.f += forward;
      s.f_to_i += all - saved;
      if (has_backward(range.module)) {
        s.i += time(module.i) + forward * way.numerator / way.denominator;
        s.rebuilt += saved;
      }
      if (module.trained) {
        s.w += time(module.w);
        s.i_to_w += Bytes{range.count * here * module.kept};
      }
    }
    s.b = s.i + s.w;
  }
  return strategies;
}

std::vector<Strategy> RandomCosts::mixed_strategies(std::span<const LayerRange> layers,
                                                    const Work& work, const Batch& batch) const {
  std::vector<Strategy> all = strategies(layers, work, batch);
  if (!numbers_.mixed || all.size() < 2) {
    return all;
  }
  // Half of the layers recompute as the last strategy does, one of them at a time.
  const Strategy& keep = all.front();
  const Strategy& most = all.back();
  Strategy mixed = keep;
  mixed.mode = RecomputeMode::Mixed;
  mixed.i += (most.i - keep.i) / 2;
  mixed.b = mixed.i + mixed.w;
  mixed.f_to_i -= Bytes{(keep.f_to_i - most.f_to_i).count / 2};
  mixed.rebuilt = Bytes{most.rebuilt.count / 4};
  all.push_back(mixed);
  std::ranges::stable_sort(all, {}, &Strategy::b);
  return all;
}

std::optional<Strategy> RandomCosts::offloaded(const Strategy& keep) const {
  if (numbers_.copied_per_ns == 0) {
    return std::nullopt;
  }
  Strategy offloaded = keep;
  offloaded.mode = RecomputeMode::Offload;
  offloaded.copy = Duration{1 + keep.f_to_i.count / numbers_.copied_per_ns};
  offloaded.offload = keep.f_to_i;
  return offloaded;
}

Bytes RandomCosts::transient(std::span<const LayerRange> layers, const Work& work,
                             const Batch& batch) const {
  Bytes bytes{};
  for (const LayerRange& range : layers) {
    const RandomModule& module = numbers_.modules[range.module.row()];
    const bool last = range.first + range.count == problem_.modules[range.module.row()].layers;
    bytes =
        std::max(bytes, Bytes{module.transient +
                              (last ? work_tokens(work, range.module, batch) * module.logits : 0)});
  }
  return bytes;
}

TransferCost RandomCosts::transfer(const Chunk& from, const Chunk& /*to*/, const Work& from_work,
                                   const Work& /*to_work*/, const Batch& batch) const {
  const std::int64_t sent = work_tokens(from_work, from.layers.back().module, batch);
  return {Duration{numbers_.occupied * sent}, numbers_.latency, Bytes{2 * sent}};
}

TransferCost RandomCosts::gradient_reduction(const Chunk& chunk) const {
  const bool any = std::ranges::any_of(
      chunk.layers, [&](const LayerRange& range) { return trains(range.module); });
  return any ? TransferCost{numbers_.reduction, numbers_.latency, Bytes{1}} : TransferCost{};
}

Duration RandomCosts::optimizer_step(std::span<const Chunk> chunks_of_rank) const {
  return static_cast<std::int64_t>(chunks_of_rank.size()) * numbers_.step;
}

}  // namespace dipsim::test
