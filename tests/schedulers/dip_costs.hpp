// SPDX-License-Identifier: Apache-2.0
// Costs for the partition and the planners of DIP: an encoder and a language model, lowered by the
// product's own lowering.
#pragma once

#include "sim/core/random.hpp"
#include "tests/models/fake_costs.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace dipsim::test {

/// FakeCosts with an embedding or a head: the first or last layer of a module takes longer; and
/// with bytes that a split backward keeps from I to W.
class HeadedCosts : public FakeCosts {
 public:
  using FakeCosts::FakeCosts;

  std::int64_t first = 0;  ///< nanoseconds more per token and pass of the first layer of a module
  std::int64_t last = 0;   ///< likewise for the last layer of the last module
  std::int64_t kept = 0;   ///< bytes per byte that a pair holds at `keep`

  [[nodiscard]] std::vector<Strategy> strategies(std::span<const LayerRange> layers,
                                                 const Work& work,
                                                 const Batch& batch) const override {
    std::vector<Strategy> all = FakeCosts::strategies(layers, work, batch);
    const std::vector<ModuleShape>& modules = problem().modules;
    Duration more{0};
    for (const LayerRange& range : layers) {
      const bool is_last = range.module.row() + 1 == modules.size() &&
                           range.first + range.count == modules.back().layers;
      more += Duration{work_tokens(work, range.module, batch) *
                       ((range.first == 0 ? first : 0) + (is_last ? last : 0))};
    }
    const Bytes held = all.front().f_to_i;
    for (Strategy& strategy : all) {
      strategy.f += more;
      strategy.i += more;
      strategy.w += more;
      strategy.b += 2 * more;
      strategy.i_to_w = kept * held;
    }
    return all;
  }
};

/// An encoder and a language model on `depth` ranks per replica.
inline HeadedCosts vision_language_costs(int depth, int replicas = 1) {
  HeadedCosts costs(
      {{.name = "vit", .layers = 12, .f = 3, .i = 3, .w = 3, .inputs = {}},
       {.name = "llm", .layers = 16, .f = 2, .i = 2, .w = 2, .inputs = {ModuleId{0}}}},
      depth, replicas);
  costs.latency = Duration{50};
  costs.last = 3;
  costs.kept = 1;
  return costs;
}

/// Microbatches of 0 to `images` images of 5 tokens and a text of 40 tokens.
inline Batch vision_language_batch(std::uint64_t seed, int microbatches, int images) {
  RandomStream random(seed, "vision language batch");
  std::vector<FakeMicrobatch> all;
  for (int m = 0; m < microbatches; ++m) {
    const auto count = static_cast<std::size_t>(random.integer(0, images));
    all.push_back({std::vector<std::int32_t>(count, 5), {40}});
  }
  return fake_batch(all);
}

/// The same microbatches on each of `replicas` replicas.
inline Batch repeated(const Batch& batch, int replicas) {
  Batch all = batch;
  for (int replica = 1; replica < replicas; ++replica) {
    all.replica.insert(all.replica.end(), batch.replica.size(), replica);
    for (std::size_t row = 0; row < batch.instances.size(); ++row) {
      all.instances.add_row(batch.instances[row]);
    }
  }
  return all;
}

}  // namespace dipsim::test
