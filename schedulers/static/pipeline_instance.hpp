// SPDX-License-Identifier: Apache-2.0
// What an order depends on that looks at times and memory: one replica in numbers.
#pragma once

#include "sim/core/ids.hpp"
#include "sim/core/units.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <vector>

namespace dipsim {

/// One replica, counted.
struct PipelineShape {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 1;  ///< per rank
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

/// One pass of a rank.
struct Step {
  Op op = Op::F;
  int chunk = 0;  ///< on this rank, in flow order
  int microbatch = 0;
  friend bool operator==(const Step&, const Step&) = default;
};

/// A message to the next stage. It occupies its link, first come first served per ordered pair of
/// ranks, and arrives `latency` after that.
struct HopCost {
  Duration occupied{0};
  Duration latency{0};
  friend bool operator==(const HopCost&, const HopCost&) = default;
};

/// One microbatch on one stage, under the strategy of its pair and at the speed of its rank. What
/// does not exist costs nothing.
struct PairCost {
  Duration forward{0};
  Duration backward{0};    ///< I where the backward is split, else B
  Duration weight{0};      ///< W
  Bytes held{};            ///< from the start of F to the end of I (or B)
  Bytes kept{};            ///< from the end of I to the end of W
  Bytes during_forward{};  ///< on top of what is held, while the pass runs; so are the next two
  Bytes during_backward{};
  Bytes during_weight{};
  HopCost sent{};      ///< activations, to the next stage
  HopCost returned{};  ///< their gradient, to the nearest stage before that has a backward
  friend bool operator==(const PairCost&, const PairCost&) = default;
};

/// The same for all microbatches of a stage: frozen layers may have no backward, or none for
/// weights.
struct StageShape {
  int rank = 0;   ///< inside the replica
  int chunk = 0;  ///< on that rank, in flow order
  bool has_backward = true;
  bool has_weight = false;
  friend bool operator==(const StageShape&, const StageShape&) = default;
};

/// One replica of a pipeline through which every microbatch flows stage by stage. Times and sizes
/// may differ between stages and between microbatches. A plain value: equal instances get equal
/// orders.
struct PipelineInstance {
  PipelineShape shape;
  Op backward_op = Op::B;            ///< I where the backward is split
  std::vector<StageShape> stages{};  ///< in flow order: ranks × chunks
  std::vector<PairCost> costs{};     ///< row stage × microbatches + microbatch
  std::vector<Bytes> room{};         ///< per rank: its limit minus what it holds at all times
  std::vector<RankId> ranks{};       ///< per rank: its name, for messages

  [[nodiscard]] int stage_count() const { return static_cast<int>(stages.size()); }

  [[nodiscard]] const StageShape& stage(int number) const {
    return stages[static_cast<std::size_t>(number)];
  }

  [[nodiscard]] std::size_t row(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(shape.microbatches) +
           static_cast<std::size_t>(microbatch);
  }

  [[nodiscard]] const PairCost& cost(int stage, int microbatch) const {
    return costs[row(stage, microbatch)];
  }
};

}  // namespace dipsim
