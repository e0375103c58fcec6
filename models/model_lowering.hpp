// SPDX-License-Identifier: Apache-2.0
// A model on a cluster: what its layers cost there.
#pragma once

#include "models/lower.hpp"
#include "models/model.hpp"
#include "models/training_state.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/network_time.hpp"
#include "sim/graph/lowering.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dipsim {

/// Lowers a model under a parallel plan. Costs are remembered per (module, work shape), so a second
/// batch of equal shapes costs nothing. Thread-safe.
class ModelLowering final : public Lowering, public CostSource {
 public:
  /// Ranks take the first tp·cp·pp·dp GPUs of the cluster, tensor parallel innermost, then context
  /// parallel, replicas, pipeline (the order of Megatron-LM). Throws Input, naming the nearest
  /// legal value, when the plan does not fit the cluster, tensor-parallel groups neither share
  /// nodes evenly nor take whole ones, or tp divides some dimension of a module unevenly.
  ModelLowering(LmmModel model, Cluster cluster, ParallelPlan plan,
                const TrainingState& state = {});
  ~ModelLowering() override;

  [[nodiscard]] const LmmModel& model() const;
  [[nodiscard]] const Cluster& cluster() const;
  [[nodiscard]] const ParallelPlan& plan() const;

  /// Useful FLOPs of every module on one microbatch; model_flops() is their sum.
  [[nodiscard]] std::vector<double> module_flops(const Batch& batch, MicrobatchId microbatch) const;

  // Lowering
  [[nodiscard]] const Problem& problem() const override;
  [[nodiscard]] std::vector<Strategy> costs(std::span<const LayerRange> layers, const Work& work,
                                            const Batch& batch) const override;
  [[nodiscard]] ChunkMemory memory(std::span<const LayerRange> layers) const override;
  [[nodiscard]] std::vector<int> group_degrees() const override;
  /// Groups take the GPUs of the plan, those with wide tensor parallelism first; inside a group
  /// tensor parallel innermost, then the copies of all replicas, then the pipeline.
  [[nodiscard]] const ModelLowering& on_groups(std::span<const ModuleGroup> groups) const override;
  [[nodiscard]] TaskGraph lower(const Draft& draft, const Batch& batch) const override;

  // CostSource
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
  [[nodiscard]] int gradient_buckets(const Chunk& chunk) const override;
  [[nodiscard]] TransferCost weight_gather(const Chunk& chunk) const override;
  [[nodiscard]] TransferCost gradient_scatter(const Chunk& chunk) const override;
  [[nodiscard]] bool reshards() const override;
  [[nodiscard]] Duration optimizer_step(std::span<const Chunk> chunks_of_rank) const override;
  [[nodiscard]] Bytes optimizer_transient(std::span<const Chunk> chunks_of_rank) const override;
  [[nodiscard]] bool trains(ModuleId module) const override;
  [[nodiscard]] double model_flops(const Batch& batch) const override;
  [[nodiscard]] double peak_flops_per_s() const override;

 private:
  struct State;

  explicit ModelLowering(std::unique_ptr<State> state);

  /// The norm of all gradients of a rank, so many bytes of them on each GPU.
  [[nodiscard]] double clipping_seconds(double gradient_bytes) const;

  /// Sum of the gradients of embeddings that heads on other ranks share.
  [[nodiscard]] double tied_seconds(std::span<const Chunk> chunks_of_rank) const;

  /// A collective of so many bytes outside experts and in experts, each over the GPUs that hold the
  /// same ones of a chunk.
  [[nodiscard]] TransferCost over_replicas(CollectiveKind kind, const Chunk& chunk, double dense,
                                           double experts) const;

  std::unique_ptr<State> state_;
};

}  // namespace dipsim
