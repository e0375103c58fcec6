// SPDX-License-Identifier: Apache-2.0
// A multimodal model whose costs are proportional to tokens, for tests of lowerings and planners.
#pragma once

#include "models/lower.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "tests/support/work_tokens.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::test {

/// A module whose layers all cost the same: nanoseconds per token and pass.
struct FakeModule {
  std::string name;
  int layers = 1;
  std::int64_t f = 0, i = 0, w = 0;
  bool trained = true;
  std::vector<ModuleId> inputs;
  double parameters = 1.0;  ///< per layer
};

/// Transfers occupy their link for one nanosecond per token of the sending work's last module and
/// take `latency`. Reduction and optimizer take what their fields say, zero at first. Keep holds a
/// byte per token and layer; Full holds nothing and runs F again in I and B.
class FakeCosts : public Lowering, public CostSource {
 public:
  Duration latency{0};
  Duration reduction{0};
  Duration reduction_latency{0};
  Duration step{0};        ///< per layer
  Duration copy{0};        ///< to host memory, per byte; 0: no offloading
  mutable int costed = 0;  ///< calls of strategies()

  FakeCosts(std::vector<FakeModule> modules, int depth, int replicas = 1)
      : modules_(std::move(modules)) {
    problem_.replicas = replicas;
    for (const FakeModule& module : modules_) {
      problem_.modules.push_back(
          {module.name, module.layers,
           std::vector<double>(static_cast<std::size_t>(module.layers), module.parameters),
           module.inputs, module.trained});
    }
    for (int r = 0; r < depth * replicas; ++r) {
      const GpuId gpu{r};
      problem_.cells.add_row(std::span(&gpu, 1));
      Rank rank;
      rank.replica = r / depth;
      rank.position = r % depth;
      rank.cells = {CellId{r}};
      rank.memory_limit = Bytes{std::int64_t{1} << 40};
      problem_.ranks.push_back(rank);
    }
  }

  [[nodiscard]] const Problem& problem() const override { return problem_; }

  [[nodiscard]] std::vector<Strategy> costs(std::span<const LayerRange> layers, const Work& work,
                                            const Batch& batch) const override {
    return strategies(layers, work, batch);
  }

  [[nodiscard]] ChunkMemory memory(std::span<const LayerRange> layers) const override {
    return {Bytes{2 * count(layers)}, Bytes{4 * count(layers)}, Bytes{12 * count(layers)}};
  }

  [[nodiscard]] TaskGraph lower(const Draft& draft, const Batch& batch) const override {
    return lower_draft(draft, batch, *this);
  }

  [[nodiscard]] std::vector<Strategy> strategies(std::span<const LayerRange> layers,
                                                 const Work& work,
                                                 const Batch& batch) const override {
    ++std::atomic_ref(costed);  // planners search on several threads
    Strategy keep;
    for (const LayerRange& range : layers) {
      const FakeModule& module = modules_[range.module.row()];
      const std::int64_t amount = range.count * work_tokens(work, range.module, batch);
      keep.f += Duration{amount * module.f};
      keep.i += Duration{amount * module.i};
      keep.w += Duration{amount * module.w};
      keep.f_to_i += Bytes{amount};
    }
    keep.b = keep.i + keep.w;
    Strategy full = keep;
    full.mode = RecomputeMode::Full;
    full.i += keep.f;
    full.b += keep.f;
    full.f_to_i = Bytes{0};
    full.rebuilt = keep.f_to_i;
    return {keep, full};
  }

  [[nodiscard]] std::optional<Strategy> offloaded(const Strategy& keep) const override {
    if (copy.count() == 0) {
      return std::nullopt;
    }
    Strategy offloaded = keep;
    offloaded.mode = RecomputeMode::Offload;
    offloaded.copy = keep.f_to_i.count * copy;
    offloaded.offload = keep.f_to_i;
    return offloaded;
  }

  [[nodiscard]] Bytes transient(std::span<const LayerRange> layers, const Work& /*work*/,
                                const Batch& /*batch*/) const override {
    return Bytes{count(layers)};
  }

  [[nodiscard]] TransferCost transfer(const Chunk& from, const Chunk& /*to*/, const Work& from_work,
                                      const Work& /*to_work*/, const Batch& batch) const override {
    const std::int64_t sent = work_tokens(from_work, from.layers.back().module, batch);
    return {Duration{sent}, latency, Bytes{2 * sent}};
  }

  [[nodiscard]] TransferCost gradient_reduction(const Chunk& chunk) const override {
    return modules_[chunk.layers.front().module.row()].trained
               ? TransferCost{reduction, reduction_latency, Bytes{7}}
               : TransferCost{};
  }

  [[nodiscard]] Duration optimizer_step(std::span<const Chunk> chunks_of_rank) const override {
    Duration time{0};
    for (const Chunk& chunk : chunks_of_rank) {
      time += count(chunk.layers) * step;
    }
    return time;
  }

  [[nodiscard]] bool trains(ModuleId module) const override {
    return modules_[module.row()].trained;
  }

  [[nodiscard]] double model_flops(const Batch& batch) const override {
    return 3.0 * static_cast<double>(batch.microbatches());
  }

  [[nodiscard]] double peak_flops_per_s() const override { return 5.0; }

 private:
  static std::int64_t count(std::span<const LayerRange> layers) {
    std::int64_t sum = 0;
    for (const LayerRange& range : layers) {
      sum += range.count;
    }
    return sum;
  }

  std::vector<FakeModule> modules_;
  Problem problem_;
};

/// One microbatch: per module the tokens of each instance.
using FakeMicrobatch = std::vector<std::vector<std::int32_t>>;

/// Microbatches dealt to the replicas in contiguous blocks.
inline Batch fake_batch(const std::vector<FakeMicrobatch>& microbatches, int replicas = 1) {
  Batch batch;
  batch.modules = microbatches.front().size();
  const auto per_replica = microbatches.size() / static_cast<std::size_t>(replicas);
  for (std::size_t m = 0; m < microbatches.size(); ++m) {
    batch.replica.push_back(static_cast<std::int32_t>(m / per_replica));
    for (const auto& tokens : microbatches[m]) {
      batch.instances.add_row();
      for (const std::int32_t length : tokens) {
        batch.instances.push_back({.tokens = length,
                                   .output_tokens = length,
                                   .first_group = static_cast<std::int32_t>(batch.groups.size()),
                                   .group_count = 1});
        batch.groups.push_back(length);
      }
    }
  }
  return batch;
}

}  // namespace dipsim::test
