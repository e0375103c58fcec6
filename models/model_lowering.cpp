// SPDX-License-Identifier: Apache-2.0
#include "models/model_lowering.hpp"

#include "models/boundary.hpp"
#include "models/cost_model.hpp"
#include "models/pass_cost.hpp"
#include "models/ranks.hpp"
#include "sim/cluster/network_time.hpp"

#include <set>
#include <utility>

namespace dipsim {

struct ModelLowering::State {
  LmmModel model;
  ParallelPlan plan;
  TrainingState bytes;
  CostTable table;
  Problem problem;
  CollectiveGroup replicas;

  State(LmmModel m, Cluster cluster, const ParallelPlan& p, const TrainingState& state)
      : model(std::move(m)),
        plan(p),
        bytes(state),
        table(place_modules(model, p), std::move(cluster)),
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

  [[nodiscard]] double optimizer_shards() const { return plan.zero > 0 ? plan.dp : 1.0; }

  [[nodiscard]] int node_of(RankId rank) const {
    const CellId cell = problem.ranks[rank.row()].cells.front();
    return table.cluster().node_of(problem.cells[cell.row()].front());
  }
};

ModelLowering::ModelLowering(LmmModel model, Cluster cluster, ParallelPlan plan,
                             const TrainingState& state) {
  check_model(model, "model " + model.name);
  check_plan(model, cluster, plan);
  state_ = std::make_unique<State>(std::move(model), std::move(cluster), plan, state);
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
  return strategies(layers, work, batch);
}

std::optional<Strategy> ModelLowering::offloaded(const Strategy& keep) const {
  if (cluster().host_gbytes_per_s == 0.0) {
    return std::nullopt;
  }
  return offload_strategy(keep, cluster());
}

Bytes ModelLowering::transient(std::span<const LayerRange> layers, const Work& work,
                               const Batch& batch) const {
  return pass_transient(state_->table, layers, work, batch);
}

ChunkMemory ModelLowering::memory(std::span<const LayerRange> layers) const {
  const double trained = state_->local_parameters(layers, true);
  const TrainingState& bytes = state_->bytes;
  const auto share = [&](int from) { return plan().zero >= from ? plan().dp : 1.0; };
  // At 2 the weights stay gathered from F to the backward.
  const double weights = bytes.weights / share(2) + (plan().zero == 2 ? bytes.gathered : 0.0);
  return {.weights = round_to_bytes(weights * state_->local_parameters(layers, false), "weights"),
          .gradients = round_to_bytes(bytes.gradients * trained / share(2), "gradients"),
          .optimizer = round_to_bytes(bytes.optimizer * trained / share(1), "optimizer state")};
}

TaskGraph ModelLowering::lower(const Draft& draft, const Batch& batch) const {
  return lower_draft(draft, batch, *this);
}

TransferCost ModelLowering::transfer(const Chunk& from, const Chunk& to, const Work& from_work,
                                     const Work& to_work, const Batch& batch) const {
  const Bytes bytes =
      boundary_bytes(state_->model, state_->table.modules(), to, from_work, to_work, batch);
  const int from_node = state_->node_of(from.rank);
  const int to_node = state_->node_of(to.rank);
  LinkTime time =
      p2p_time(cluster(), static_cast<double>(bytes.count),
               {.same_node = from_node == to_node,
                .same_leaf = cluster().leaf_of_node(from_node) == cluster().leaf_of_node(to_node),
                .communicator = plan().pp});
  if (!plan().sequence_parallel) {  // every GPU sends its share, and they gather it on arrival
    time.latency += collective_seconds(cluster(), CollectiveKind::AllGather,
                                       static_cast<double>(bytes.count) * plan().tp,
                                       tensor_group(cluster(), plan().tp));
  }
  return {.occupied = round_to_duration(time.occupied, "transfer"),
          .latency = round_to_duration(time.latency, "latency"),
          .bytes = bytes};
}

TransferCost ModelLowering::over_replicas(CollectiveKind kind, double bytes) const {
  if (plan().dp == 1 || bytes == 0.0) {
    return {};
  }
  return {.occupied = round_to_duration(
              collective_seconds(cluster(), kind, bytes, state_->replicas), name_of(kind)),
          .latency = Duration{0},
          .bytes = round_to_bytes(bytes, name_of(kind))};
}

TransferCost ModelLowering::gradient_reduction(const Chunk& chunk) const {
  if (plan().zero >= 2) {
    return {};  // gradient_scatter() reduces them
  }
  return over_replicas(plan().zero == 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
                       state_->bytes.reduced * state_->local_parameters(chunk.layers, true));
}

TransferCost ModelLowering::weight_gather(const Chunk& chunk) const {
  return over_replicas(CollectiveKind::AllGather,
                       state_->bytes.gathered * state_->local_parameters(chunk.layers, false));
}

TransferCost ModelLowering::gradient_scatter(const Chunk& chunk) const {
  return over_replicas(CollectiveKind::ReduceScatter,
                       state_->bytes.reduced * state_->local_parameters(chunk.layers, true));
}

bool ModelLowering::reshards() const { return plan().zero == 3; }

Duration ModelLowering::optimizer_step(std::span<const Chunk> chunks_of_rank) const {
  double parameters = 0.0;
  std::set<int> counted;
  for (const Chunk& chunk : chunks_of_rank) {
    if (counted.insert(chunk.weight_set).second) {
      parameters += state_->local_parameters(chunk.layers, true);
    }
  }
  double seconds = memory_seconds(
      cluster().gpu, state_->bytes.step_traffic * parameters / state_->optimizer_shards());
  if (plan().zero == 1) {
    seconds += collective_seconds(cluster(), CollectiveKind::AllGather,
                                  state_->bytes.weights * parameters, state_->replicas);
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
  return cluster().gpu.peak_flops_per_s() * plan().tp * plan().pp * plan().simulated_replicas();
}

}  // namespace dipsim
