// SPDX-License-Identifier: Apache-2.0
// How schedulers learn costs without knowing models or clusters.
#pragma once

#include "sim/graph/batch.hpp"
#include "sim/graph/task_graph.hpp"

#include <span>
#include <string>
#include <vector>

namespace dipsim {

/// What a partitioner needs to know of a module.
struct ModuleShape {
  std::string name;
  int layers = 0;
  std::vector<double>
      layer_parameters;          ///< per layer; embedding rides on the first, head on the last
  std::vector<ModuleId> inputs;  ///< modules whose output it consumes
  bool trained = true;
};

/// The model and the ranks that a planner may place it on. Modules stand in topological order.
struct Problem {
  std::vector<ModuleShape> modules;
  Rows<GpuId> cells;
  std::vector<Rank> ranks;  ///< replica by replica, by position
  int replicas = 1;

  /// Ranks per replica.
  [[nodiscard]] int depth() const { return static_cast<int>(ranks.size()) / replicas; }
};

/// Bytes per GPU that a chunk holds during the whole iteration.
struct ChunkMemory {
  Bytes weights, gradients, optimizer;
};

/// Turns layers and work into times, bytes and tasks. Thread-safe after construction.
class Lowering {
 public:
  virtual ~Lowering() = default;

  [[nodiscard]] virtual const Problem& problem() const = 0;

  /// Cost of these layers on this work at speed 1, one strategy per recompute mode that exists,
  /// fastest first; none of them offloads.
  [[nodiscard]] virtual std::vector<Strategy> costs(std::span<const LayerRange> layers,
                                                    const Work& work, const Batch& batch) const = 0;

  [[nodiscard]] virtual ChunkMemory memory(std::span<const LayerRange> layers) const = 0;

  /// Tensor-parallel degrees that groups of modules may have: ascending, each divides the next.
  [[nodiscard]] virtual std::vector<int> group_degrees() const {
    return {problem().ranks.front().tp};
  }

  /// The same model with each module on a group of its own, `groups` having one per module and no
  /// more GPUs than a replica of problem(). Its ranks stand replica by replica, inside a replica
  /// module by module, copy by copy, by position; its costs and sizes are those of the groups. By
  /// default this lowering itself, whose costs are the same on any ranks. Valid as long as this
  /// one. Throws Input where a group has no legal degree or the groups have too many GPUs.
  [[nodiscard]] virtual const Lowering& on_groups(std::span<const ModuleGroup> /*groups*/) const {
    return *this;
  }

  /// All tasks, edges and pairs of the draft, on its groups where it has some.
  [[nodiscard]] virtual TaskGraph lower(const Draft& draft, const Batch& batch) const = 0;

 protected:
  Lowering() = default;
  Lowering(const Lowering&) = default;
  Lowering& operator=(const Lowering&) = default;
};

}  // namespace dipsim
