// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/stage_memory.hpp"

#include "sim/graph/schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace dipsim {

namespace {

/// What one layer needs, in bytes.
struct LayerNeed {
  std::int64_t state = 0;            ///< weights, gradients, optimizer state
  std::int64_t rebuilt = 0;          ///< most that recomputation brings back
  std::vector<std::int64_t> kept{};  ///< per microbatch, from F to B (or I)
  /// Per microbatch what it holds more from I to W than before I; nothing without a split.
  std::vector<std::int64_t> for_weight{};
};

LayerNeed need_of(const LayerRange& layer, const Lowering& lowering, const Batch& batch,
                  RecomputeMode mode, bool split_backward) {
  const ChunkMemory memory = lowering.memory(std::span(&layer, 1));
  LayerNeed need{.state = memory.weights.count + memory.gradients.count + memory.optimizer.count};
  for (std::size_t m = 0; m < batch.microbatches(); ++m) {
    const Work work{.replica = batch.replica[m], .portions = {{.microbatch = MicrobatchId{m}}}};
    const auto strategies = lowering.costs(std::span(&layer, 1), work, batch);
    const Strategy& strategy = strategies[uniform_strategy(strategies, mode)];
    need.kept.push_back(strategy.f_to_i.count);
    need.for_weight.push_back(
        split_backward ? std::max<std::int64_t>(strategy.i_to_w.count - strategy.f_to_i.count, 0)
                       : 0);
    need.rebuilt = std::max(need.rebuilt, strategy.rebuilt.count);
  }
  return need;
}

/// The most that `length` consecutive microbatches of one replica keep together.
std::int64_t largest_window(std::span<const std::int64_t> kept, const Batch& batch, int length) {
  std::int64_t largest = 0;
  std::int64_t sum = 0;
  std::size_t first = 0;
  for (std::size_t m = 0; m < kept.size(); ++m) {
    while (first < m && (batch.replica[first] != batch.replica[m] ||
                         m - first >= static_cast<std::size_t>(length))) {
      sum -= kept[first++];
    }
    sum += kept[m];
    largest = std::max(largest, sum);
  }
  return largest;
}

/// A stage that grows at its end and shrinks at its begin.
class Stage {
 public:
  Stage(std::span<const LayerNeed> layers, const Batch& batch, int in_flight, int percent)
      : layers_(layers),
        batch_(batch),
        in_flight_(in_flight),
        percent_(percent),
        kept_(batch.microbatches(), 0),
        for_weight_(batch.microbatches(), 0) {}

  void add_last() { change(layers_[end_++], 1); }

  void remove_first() { change(layers_[begin_++], -1); }

  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t on_top = 0;
    for (const LayerNeed& layer : layers_.subspan(begin_, end_ - begin_)) {
      on_top = std::max(on_top, layer.rebuilt);
    }
    for (const std::int64_t bytes : for_weight_) {
      on_top = std::max(on_top, bytes);
    }
    return state_ + (largest_window(kept_, batch_, in_flight_) + on_top) * percent_ / 100;
  }

  [[nodiscard]] std::size_t end() const { return end_; }

 private:
  void change(const LayerNeed& layer, int sign) {
    state_ += sign * layer.state;
    for (std::size_t m = 0; m < kept_.size(); ++m) {
      kept_[m] += sign * layer.kept[m];
      for_weight_[m] += sign * layer.for_weight[m];
    }
  }

  std::span<const LayerNeed> layers_;
  const Batch& batch_;
  int in_flight_;
  int percent_;  ///< at which activations count
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t state_ = 0;
  std::vector<std::int64_t> kept_;        ///< per microbatch
  std::vector<std::int64_t> for_weight_;  ///< per microbatch
};

/// Where the stage must end, per layer that it begins with.
std::vector<std::size_t> ends_within(Stage stage, std::size_t layers, std::int64_t room) {
  std::vector<std::size_t> ends;
  for (std::size_t begin = 0; begin < layers; ++begin) {
    if (stage.end() == begin) {
      stage.add_last();
    }
    while (stage.end() < layers && stage.bytes() <= room) {
      stage.add_last();
    }
    ends.push_back(stage.bytes() <= room ? stage.end() : stage.end() - 1);
    stage.remove_first();
  }
  return ends;
}

/// What the memory of the ranks at this position leaves beside their reserve.
std::int64_t room_at(const Problem& problem, int position) {
  std::int64_t room = std::numeric_limits<std::int64_t>::max();
  for (const Rank& rank : problem.ranks) {
    if (rank.position == position) {
      room = std::min(room, rank.memory_limit.count - rank.reserved.count);
    }
  }
  return room;
}

}  // namespace

RunEnds stage_ends(const Lowering& lowering, const Batch& batch, RecomputeMode mode,
                   int activation_percent, bool split_backward) {
  const Problem& problem = lowering.problem();
  std::vector<LayerNeed> layers;
  for (std::size_t module = 0; module < problem.modules.size(); ++module) {
    for (int layer = 0; layer < problem.modules[module].layers; ++layer) {
      layers.push_back(need_of({.module = ModuleId{module}, .first = layer, .count = 1}, lowering,
                               batch, mode, split_backward));
    }
  }
  RunEnds ends;
  for (int position = 0; position < problem.depth(); ++position) {
    const Stage stage(layers, batch, problem.depth() - position, activation_percent);
    ends.push_back(ends_within(stage, layers.size(), room_at(problem, position)));
  }
  return ends;
}

}  // namespace dipsim
