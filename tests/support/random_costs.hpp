// SPDX-License-Identifier: Apache-2.0
// Models whose costs are numbers that a test may draw.
#pragma once

#include "models/lower.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dipsim::test {

/// What a layer of a module costs. Times in nanoseconds, sizes in bytes.
struct RandomModule {
  std::int64_t f = 0, i = 0, w = 0;  ///< per token and pass
  std::int64_t launch = 0;           ///< of every pass, whatever its work
  std::int64_t head = 0;             ///< per token and pass, more on the last layer
  std::int64_t held = 0;             ///< per token, from F to I or B, if everything is kept
  std::int64_t input = 0;            ///< of it what full recomputation keeps
  std::int64_t kept = 0;             ///< per token, from I to W
  std::int64_t transient = 0;        ///< while a pass runs, whatever its work
  std::int64_t logits = 0;           ///< per token, more on the last layer
  std::int64_t weights = 0;          ///< as much again for gradients, thrice for the optimizer
  bool trained = true;
};

/// A model and cluster whose costs are RandomModule's, lowered by the product's own lowering. Of
/// the strategies keep, selective (saves half of what full saves, for half the time), full and a
/// mix (of keep and full, in drafts with layer mixes) a model has the first and any of the others.
class RandomCosts final : public Lowering, public CostSource {
 public:
  struct Numbers {
    std::vector<ModuleShape> shapes;
    std::vector<RandomModule> modules;
    std::vector<double> speeds;  ///< per rank
    int replicas = 1;
    bool selective = true, full = true, mixed = true;
    std::int64_t occupied = 0;  ///< of a link, per token sent
    Duration latency{0};
    Duration reduction{0};
    Duration step{0};
    Bytes reserved{};
    std::int64_t copied_per_ns = 0;  ///< bytes to or from host memory; 0: no offloading
  };

  explicit RandomCosts(Numbers numbers);

  /// Memory of each rank. Until the first call it is ample.
  void set_limits(std::span<const Bytes> limits);

  [[nodiscard]] const Numbers& numbers() const { return numbers_; }

  [[nodiscard]] const Problem& problem() const override { return problem_; }

  [[nodiscard]] std::vector<Strategy> costs(std::span<const LayerRange> layers, const Work& work,
                                            const Batch& batch) const override {
    return strategies(layers, work, batch);
  }

  [[nodiscard]] ChunkMemory memory(std::span<const LayerRange> layers) const override;

  [[nodiscard]] TaskGraph lower(const Draft& draft, const Batch& batch) const override {
    return lower_draft(draft, batch, *this);
  }

  [[nodiscard]] std::vector<Strategy> strategies(std::span<const LayerRange> layers,
                                                 const Work& work,
                                                 const Batch& batch) const override;
  [[nodiscard]] std::vector<Strategy> mixed_strategies(std::span<const LayerRange> layers,
                                                       const Work& work,
                                                       const Batch& batch) const override;
  [[nodiscard]] std::optional<Strategy> offloaded(const Strategy& keep) const override;
  [[nodiscard]] Bytes transient(std::span<const LayerRange> layers, const Work& work,
                                const Batch& batch) const override;
  [[nodiscard]] TransferCost transfer(const Chunk& from, const Chunk& to, const Work& from_work,
                                      const Work& to_work, const Batch& batch) const override;
  [[nodiscard]] TransferCost gradient_reduction(const Chunk& chunk) const override;
  [[nodiscard]] Duration optimizer_step(std::span<const Chunk> chunks_of_rank) const override;

  [[nodiscard]] bool trains(ModuleId module) const override {
    return numbers_.modules[module.row()].trained;
  }

  /// Whether a gradient must arrive at the module: it is trained, or one upstream is.
  [[nodiscard]] bool has_backward(ModuleId module) const { return backward_[module.row()]; }

  [[nodiscard]] double model_flops(const Batch& /*batch*/) const override { return 0.0; }

  [[nodiscard]] double peak_flops_per_s() const override { return 0.0; }

 private:
  Numbers numbers_;
  std::vector<bool> backward_;
  Problem problem_;
};

}  // namespace dipsim::test
