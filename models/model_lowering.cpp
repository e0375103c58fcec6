// SPDX-License-Identifier: Apache-2.0
#include "models/model_lowering.hpp"

#include "models/boundary.hpp"
#include "models/cost_model.hpp"
#include "models/pass_cost.hpp"
#include "models/ranks.hpp"
#include "sim/cluster/kernel_time.hpp"

#include <set>
#include <utility>

namespace dipsim {

namespace {

// Bytes per parameter with bf16 weights, fp32 gradients and Adam (Megatron-LM README, "distributed
// optimizer": 6 + 12/d): the 12 are an fp32 copy of the weights and two moments.
constexpr double kWeightBytes = 2.0;
constexpr double kGradientBytes = 4.0;
constexpr double kOptimizerBytes = 12.0;

/// Adam reads gradient, moments and fp32 weights (16), writes moments, fp32 and bf16 weights (14).
constexpr double kOptimizerTraffic = 30.0;

}  // namespace

struct ModelLowering::State {
  LmmModel model;
  ParallelPlan plan;
  CostTable table;
  Problem problem;
  CollectiveGroup replicas;

  State(LmmModel m, Cluster cluster, const ParallelPlan& p)
      : model(std::move(m)),
        plan(p),
        table(place_modules(model, p.tp), std::move(cluster)),
        problem(make_problem(table.modules(), model, table.cluster(), p)),
        replicas(replica_group(table.cluster(), p)) {}

  /// Parameters per GPU.
  [[nodiscard]] double local_parameters(std::span<const LayerRange> layers,
                                        bool trained_only) const {
    double parameters = 0.0;
    for (const LayerRange& range : layers) {
      const ModuleShape& module = problem.modules[range.module.row()];
      for (int layer = range.first; layer < range.first + range.count; ++layer) {
        parameters += module.trained || !trained_only
                          ? module.layer_parameters[static_cast<std::size_t>(layer)]
                          : 0.0;
      }
    }
    return parameters / plan.tp;
  }

  [[nodiscard]] double optimizer_shards() const {
    return plan.distributed_optimizer ? plan.dp : 1.0;
  }

  [[nodiscard]] int node_of(RankId rank) const {
    const CellId cell = problem.ranks[rank.row()].cells.front();
    return table.cluster().node_of(problem.cells[cell.row()].front());
  }
};

ModelLowering::ModelLowering(LmmModel model, Cluster cluster, ParallelPlan plan) {
  check_model(model, "model " + model.name);
  check_plan(model, cluster, plan);
  state_ = std::make_unique<State>(std::move(model), std::move(cluster), plan);
}

ModelLowering::~ModelLowering() = default;

const LmmModel& ModelLowering::model() const { return state_->model; }

const Cluster& ModelLowering::cluster() const { return state_->table.cluster(); }

const ParallelPlan& ModelLowering::plan() const { return state_->plan; }

const Problem& ModelLowering::problem() const { return state_->problem; }

std::vector<Strategy> ModelLowering::strategies(std::span<const LayerRange> layers,
                                                const Work& work, const Batch& batch) const {
  return pass_strategies(state_->table, layers, work, batch);
}

std::vector<Strategy> ModelLowering::mixed_strategies(std::span<const LayerRange> layers,
                                                      const Work& work, const Batch& batch) const {
  return pass_strategies(state_->table, layers, work, batch, kStrategyCandidates);
}

std::vector<Strategy> ModelLowering::costs(std::span<const LayerRange> layers, const Work& work,
                                           const Batch& batch) const {
  std::vector<Strategy> all = strategies(layers, work, batch);
  if (cluster().host_gbytes_per_s > 0.0) {
    all.insert(all.begin() + 1, offload_strategy(all.front(), cluster()));
  }
  return all;
}

Bytes ModelLowering::transient(std::span<const LayerRange> layers, const Work& work,
                               const Batch& batch) const {
  return pass_transient(state_->table, layers, work, batch);
}

ChunkMemory ModelLowering::memory(std::span<const LayerRange> layers) const {
  const double trained = state_->local_parameters(layers, true);
  return {
      .weights = round_to_bytes(kWeightBytes * state_->local_parameters(layers, false), "weights"),
      .gradients = round_to_bytes(kGradientBytes * trained, "gradients"),
      .optimizer = round_to_bytes(kOptimizerBytes * trained / state_->optimizer_shards(),
                                  "optimizer state")};
}

TaskGraph ModelLowering::lower(const Draft& draft, const Batch& batch) const {
  return lower_draft(draft, batch, *this);
}

TransferCost ModelLowering::transfer(const Chunk& from, const Chunk& to, const Work& from_work,
                                     const Work& to_work, const Batch& batch) const {
  const Bytes bytes =
      boundary_bytes(state_->model, state_->table.modules(), to, from_work, to_work, batch);
  const bool same_node = state_->node_of(from.rank) == state_->node_of(to.rank);
  const LinkTime time = p2p_time(cluster(), static_cast<double>(bytes.count), same_node);
  return {.occupied = round_to_duration(time.occupied, "transfer"),
          .latency = round_to_duration(time.latency, "latency"),
          .bytes = bytes};
}

TransferCost ModelLowering::gradient_reduction(const Chunk& chunk) const {
  const double bytes = kGradientBytes * state_->local_parameters(chunk.layers, true);
  const CollectiveKind kind =
      plan().distributed_optimizer ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
  if (plan().dp == 1 || bytes == 0.0) {
    return {};
  }
  return {.occupied = round_to_duration(
              collective_seconds(cluster(), kind, bytes, state_->replicas), "gradient reduction"),
          .latency = Duration{0},
          .bytes = round_to_bytes(bytes, "gradients")};
}

Duration ModelLowering::optimizer_step(std::span<const Chunk> chunks_of_rank) const {
  double parameters = 0.0;
  std::set<int> counted;
  for (const Chunk& chunk : chunks_of_rank) {
    if (counted.insert(chunk.weight_set).second) {
      parameters += state_->local_parameters(chunk.layers, true);
    }
  }
  double seconds =
      memory_seconds(cluster().gpu, kOptimizerTraffic * parameters / state_->optimizer_shards());
  if (plan().distributed_optimizer) {
    seconds += collective_seconds(cluster(), CollectiveKind::AllGather, kWeightBytes * parameters,
                                  state_->replicas);
  }
  return round_to_duration(seconds, "optimizer step");
}

bool ModelLowering::trains(ModuleId module) const {
  return state_->problem.modules[module.row()].trained;
}

std::vector<double> ModelLowering::module_flops(const Batch& batch, MicrobatchId microbatch) const {
  std::vector<double> flops;
  for (std::size_t i = 0; i < state_->table.modules().size(); ++i) {
    const PlacedModule& module = state_->table.modules()[i];
    // Backward counts as much as forward for each of its halves (PaLM, arXiv 2204.02311 app. B).
    const double passes = 1.0 + (module.backward ? 1.0 : 0.0) + (module.trained ? 1.0 : 0.0);
    flops.push_back(passes *
                    forward_flops(module, shape_of(batch, microbatch, ModuleId{i}, module.mask)));
  }
  return flops;
}

double ModelLowering::model_flops(const Batch& batch) const {
  double flops = 0.0;
  for (std::size_t microbatch = 0; microbatch < batch.microbatches(); ++microbatch) {
    for (const double module : module_flops(batch, MicrobatchId{microbatch})) {
      flops += module;
    }
  }
  return flops;
}

double ModelLowering::peak_flops_per_s() const {
  return cluster().gpu.peak_flops_per_s() * plan().tp * plan().pp * plan().dp;
}

}  // namespace dipsim
