// SPDX-License-Identifier: Apache-2.0
// The one place that knows which tasks and edges a draft needs; models and synthetic pipelines
// supply the costs.
#pragma once

#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/task_graph.hpp"

#include <optional>
#include <span>
#include <vector>

namespace dipsim {

/// Time and size of moving one work's tensor between two ranks.
struct TransferCost {
  Duration occupied{0};  ///< of the link
  Duration latency{0};
  Bytes bytes;  ///< per GPU of the sender
};

/// Where costs come from. Thread-safe. What a work costs depends only on its module and on the
/// instances that it holds, so that equal works are costed once. A work of no module holds all
/// instances of its microbatches: `first` and `count` of its portions are 0 and mean nothing.
class CostSource {
 public:
  virtual ~CostSource() = default;
  [[nodiscard]] virtual const Problem& problem() const = 0;
  /// One strategy per recompute mode, fastest first, with b = i + w; none of them offloads. Passes
  /// that don't exist take no time: w of a frozen module; i, w and b where nothing upstream is
  /// trained either.
  [[nodiscard]] virtual std::vector<Strategy> strategies(std::span<const LayerRange> layers,
                                                         const Work& work,
                                                         const Batch& batch) const = 0;

  /// The same with mixes of modes among the layers, for drafts that want them.
  [[nodiscard]] virtual std::vector<Strategy> mixed_strategies(std::span<const LayerRange> layers,
                                                               const Work& work,
                                                               const Batch& batch) const {
    return strategies(layers, work, batch);
  }

  /// `keep` with what it keeps copied to host memory and back; none where that is impossible.
  [[nodiscard]] virtual std::optional<Strategy> offloaded(const Strategy& /*keep*/) const {
    return std::nullopt;
  }

  /// Extra memory while F (and I or B) of these layers run: logits, workspace.
  [[nodiscard]] virtual Bytes transient(std::span<const LayerRange> layers, const Work& work,
                                        const Batch& batch) const = 0;
  /// Of the activations that leave `from` for `to`, two chunks on different ranks; gradients go the
  /// other way at the same cost. The works differ where an input module feeds another module.
  [[nodiscard]] virtual TransferCost transfer(const Chunk& from, const Chunk& to,
                                              const Work& from_work, const Work& to_work,
                                              const Batch& batch) const = 0;
  /// Gradient reduction of a chunk over all ranks that hold its weights; zero where there is
  /// nothing to reduce.
  [[nodiscard]] virtual TransferCost gradient_reduction(const Chunk& chunk) const = 0;

  /// Into how many equal pieces that reduction is cut which run beside the last backward of the
  /// chunk as its layers end; 1: it starts when that backward has ended.
  [[nodiscard]] virtual int gradient_buckets(const Chunk& /*chunk*/) const { return 1; }

  /// Gathering the weights of a chunk over its replicas before a pass, and scattering its gradients
  /// behind one; zero where replicas share neither.
  [[nodiscard]] virtual TransferCost weight_gather(const Chunk& /*chunk*/) const { return {}; }

  [[nodiscard]] virtual TransferCost gradient_scatter(const Chunk& /*chunk*/) const { return {}; }

  /// Whether gathered weights are dropped between F and B.
  [[nodiscard]] virtual bool reshards() const { return true; }

  /// Optimizer step of everything on a rank; zero: no task.
  [[nodiscard]] virtual Duration optimizer_step(std::span<const Chunk> chunks_of_rank) const = 0;

  /// Scratch memory while it runs.
  [[nodiscard]] virtual Bytes optimizer_transient(std::span<const Chunk> /*chunks_of_rank*/) const {
    return {};
  }

  /// Whether this module's weights are trained. Decides which backward passes exist: W in trained
  /// modules; I (or B) in modules that are trained or have a trained module upstream.
  [[nodiscard]] virtual bool trains(ModuleId module) const = 0;
  [[nodiscard]] virtual double model_flops(const Batch& batch) const = 0;
  [[nodiscard]] virtual double peak_flops_per_s() const = 0;

 protected:
  CostSource() = default;
  CostSource(const CostSource&) = default;
  CostSource& operator=(const CostSource&) = default;
};

/// Tasks, edges and pairs of a draft. A work of module M flows through the chunks that hold M's
/// layers (of its replica and copy), in layer order; a work of no module flows through all chunks
/// of its replica and copy. Between chunks on different ranks stands a Transfer. A module's first
/// chunk waits for the last chunk of every input module on every work that shares a microbatch with
/// it. The backward mirrors all of this. Then, where they cost anything, one gradient Collective
/// per weight set follows the last pass of each work on its chunks (exposed_reduction() of it,
/// where it runs in buckets beside the shortest of them), and one Optimizer task per rank follows
/// the collectives of its chunks and the passes of those without. Works that hold no instance get
/// tasks like all others; a planner that wants none leaves such works out. With Draft::offload the
/// copies of a pair stand in the place of the edge from F to I (or B).
///
/// Linear in the number of tasks. Tasks of one chunk and kind have consecutive ids, in the order of
/// `draft.works`. Throws Input where a work finds a layer of its modules on no chunk, or on
/// several.
TaskGraph lower_draft(const Draft& draft, const Batch& batch, const CostSource& costs);

}  // namespace dipsim
