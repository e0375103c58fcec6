// SPDX-License-Identifier: Apache-2.0
#include "models/model_lowering.hpp"

#include "models/boundary.hpp"
#include "models/cost_model.hpp"
#include "models/pass_cost.hpp"
#include "models/ranks.hpp"
#include "sim/cluster/network_time.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace dipsim {

namespace {

/// Parameters on one GPU.
struct LocalParameters {
  double outer = 0.0;  ///< of embeddings, projectors and heads
  double dense = 0.0;  ///< of blocks, outside experts
  double experts = 0.0;
  double trained_dense = 0.0;  ///< outside experts
  double trained_experts = 0.0;

  void add_outer(const ParameterCount& count, const GpuBlock& block) {
    outer += count.dense / block.tp;
    trained_dense += count.trained_dense / block.tp;
  }

  void remove_outer(double parameters, bool trained, const GpuBlock& block) {
    outer -= parameters / block.tp;
    trained_dense -= trained ? parameters / block.tp : 0.0;
  }

  void add_block(const ParameterCount& count, const GpuBlock& block) {
    dense += count.dense / block.tp;
    trained_dense += count.trained_dense / block.tp;
    experts += count.experts / block.ep;
    trained_experts += count.trained_experts / block.ep;
  }
};

}  // namespace

struct ModelLowering::State {
  LmmModel model;
  ParallelPlan plan;
  TrainingState bytes;
  std::vector<ModuleGroup> groups;  ///< empty: every module has the ranks of the plan
  CostTable table;
  Problem problem;
  std::vector<GpuBlock> blocks;                  ///< per module
  std::vector<CollectiveGroup> replicas;         ///< per module: GPUs with equal weights
  std::vector<CollectiveGroup> expert_replicas;  ///< per module: GPUs with equal experts
  std::mutex mutex;
  std::map<std::vector<int>, std::unique_ptr<ModelLowering>> on_groups;

  State(LmmModel m, Cluster cluster, const ParallelPlan& p, const TrainingState& state,
        std::vector<ModuleGroup> own)
      : model(std::move(m)),
        plan(p),
        bytes(state),
        groups(std::move(own)),
        table(place_modules(model, p, groups), std::move(cluster)),
        problem(groups.empty() ? make_problem(table.modules(), model, table.cluster(), p)
                               : make_problem(table.modules(), model, table.cluster(), p, groups)),
        blocks(groups.empty() ? blocks_of(model.modules.size(), p) : blocks_of(groups, p)) {
    for (const GpuBlock& block : blocks) {
      replicas.push_back(replica_group(table.cluster(), block));
      expert_replicas.push_back(expert_replica_group(table.cluster(), block));
    }
  }

  [[nodiscard]] LocalParameters local_parameters(std::span<const LayerRange> layers) const {
    LocalParameters local;
    for (const LayerRange& range : layers) {
      const PlacedModule& module = table.modules()[range.module.row()];
      const GpuBlock& block = blocks[range.module.row()];
      for (int layer = range.first; layer < range.first + range.count; ++layer) {
        local.add_block(count_parameters(module, Part::Block, module.spec.kind_of(layer)), block);
      }
      if (range.first == 0 && range.count > 0) {
        local.add_outer(count_parameters(module, Part::First), block);
      }
      if (range.first + range.count == module.spec.layers && range.count > 0) {
        local.add_outer(count_parameters(module, Part::Last), block);
      }
      if (is_tied_whole(range)) {  // the head has no weights of its own
        const ModuleSpec& spec = module.spec;
        local.remove_outer(static_cast<double>(spec.vocabulary) * spec.hidden,
                           module.trained && spec.lora_rank == 0, block);
      }
    }
    return local;
  }

  /// Embedding and head of a module that ties them, on one GPU.
  [[nodiscard]] bool is_tied_whole(const LayerRange& range) const {
    return model.modules[range.module.row()].tied && range.first == 0 &&
           range.count == model.modules[range.module.row()].spec.layers;
  }

  /// Of every weight set once.
  [[nodiscard]] LocalParameters local_parameters_of(std::span<const Chunk> chunks) const {
    LocalParameters sum;
    std::set<int> counted;
    for (const Chunk& chunk : chunks) {
      if (counted.insert(chunk.weight_set).second) {
        const LocalParameters local = local_parameters(chunk.layers);
        sum.outer += local.outer;
        sum.dense += local.dense;
        sum.experts += local.experts;
        sum.trained_dense += local.trained_dense;
        sum.trained_experts += local.trained_experts;
      }
    }
    return sum;
  }

  /// Of so many bytes on a GPU of this block, what is left where copies of the weights share them
  /// from this degree of ZeRO on.
  [[nodiscard]] double shared_from(int zero, const GpuBlock& block, double dense,
                                   double experts) const {
    return plan.zero < zero ? dense + experts
                            : dense / block.weight_copies() + experts / block.expert_copies();
  }

  /// Module that stands for all layers of a rank: they belong to one group.
  [[nodiscard]] static std::size_t module_of(std::span<const LayerRange> layers) {
    return layers.empty() ? 0 : layers.front().module.row();
  }

  [[nodiscard]] static std::size_t module_of(std::span<const Chunk> chunks) {
    return chunks.empty() ? 0 : module_of(chunks.front().layers);
  }

  /// Pipeline ranks that pass messages to one another.
  [[nodiscard]] int communicator() const {
    int ranks = groups.empty() ? plan.pp : 0;
    for (const ModuleGroup& group : groups) {
      ranks += group.pp;
    }
    return ranks;
  }

  [[nodiscard]] int node_of(RankId rank) const {
    const CellId cell = problem.ranks[rank.row()].cells.front();
    return table.cluster().node_of(problem.cells[cell.row()].front());
  }
};

ModelLowering::ModelLowering(LmmModel model, Cluster cluster, ParallelPlan plan,
                             const TrainingState& state) {
  check_model(model, "model " + model.name);
  check_plan(model, cluster, plan);
  state_ = std::make_unique<State>(std::move(model), std::move(cluster), plan, state,
                                   std::vector<ModuleGroup>{});
}

ModelLowering::ModelLowering(std::unique_ptr<State> state) : state_(std::move(state)) {}

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
  const LocalParameters local = state_->local_parameters(layers);
  const TrainingState& bytes = state_->bytes;
  const GpuBlock& block = state_->blocks[State::module_of(layers)];
  const double of_block = bytes.block_weights.value_or(bytes.weights);
  // At 2 the weights stay gathered from F to the backward.
  const double gathered =
      plan().zero == 2 ? bytes.gathered * (local.outer + local.dense + local.experts) : 0.0;
  const double weights = state_->shared_from(
      2, block, bytes.weights * local.outer + of_block * local.dense, of_block * local.experts);
  return {.weights = round_to_bytes(weights + gathered, "weights"),
          .gradients =
              round_to_bytes(bytes.gradients * state_->shared_from(2, block, local.trained_dense,
                                                                   local.trained_experts),
                             "gradients"),
          .optimizer =
              round_to_bytes(bytes.optimizer * state_->shared_from(1, block, local.trained_dense,
                                                                   local.trained_experts),
                             "optimizer state")};
}

std::vector<int> ModelLowering::group_degrees() const {
  return legal_group_degrees(state_->model, cluster(), plan());
}

const ModelLowering& ModelLowering::on_groups(std::span<const ModuleGroup> groups) const {
  check_groups(groups, state_->model, cluster(), plan());
  std::vector<int> key;
  for (const ModuleGroup& group : groups) {
    key.insert(key.end(), {group.tp, group.pp, group.copies});
  }
  const std::scoped_lock lock(state_->mutex);
  std::unique_ptr<ModelLowering>& known = state_->on_groups[key];
  if (known == nullptr) {
    known.reset(new ModelLowering(
        std::make_unique<State>(state_->model, cluster(), plan(), state_->bytes,
                                std::vector<ModuleGroup>(groups.begin(), groups.end()))));
  }
  return *known;
}

TaskGraph ModelLowering::lower(const Draft& draft, const Batch& batch) const {
  const bool here = draft.groups.empty() || draft.groups == state_->groups;
  return lower_draft(draft, batch, here ? *this : on_groups(draft.groups));
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
                .communicator = state_->communicator()});
  if (!plan().sequence_parallel) {  // every GPU sends its share, and they gather it on arrival
    const auto tp_of = [&](const Chunk& chunk) {
      return state_->blocks[chunk.layers.front().module.row()].tp;
    };
    time.latency +=
        collective_seconds(cluster(), CollectiveKind::AllGather,
                           static_cast<double>(bytes.count) * std::min(tp_of(from), tp_of(to)),
                           tensor_group(cluster(), tp_of(to)));
  }
  return {.occupied = round_to_duration(time.occupied, "transfer"),
          .latency = round_to_duration(time.latency, "latency"),
          .bytes = bytes};
}

TransferCost ModelLowering::over_replicas(CollectiveKind kind, const Chunk& chunk, double dense,
                                          double experts) const {
  const std::size_t module = State::module_of(chunk.layers);
  const GpuBlock& block = state_->blocks[module];
  const double shared =
      (block.weight_copies() > 1 ? dense : 0.0) + (block.expert_copies() > 1 ? experts : 0.0);
  if (shared == 0.0) {
    return {};
  }
  return {.occupied = round_to_duration(
              collective_seconds(cluster(), kind, dense, state_->replicas[module]) +
                  collective_seconds(cluster(), kind, experts, state_->expert_replicas[module]),
              name_of(kind)),
          .latency = Duration{0},
          .bytes = round_to_bytes(shared, name_of(kind))};
}

TransferCost ModelLowering::gradient_reduction(const Chunk& chunk) const {
  if (plan().zero >= 2) {
    return {};  // gradient_scatter() reduces them
  }
  const LocalParameters local = state_->local_parameters(chunk.layers);
  return over_replicas(plan().zero == 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
                       chunk, state_->bytes.reduced * local.trained_dense,
                       state_->bytes.reduced * local.trained_experts);
}

int ModelLowering::gradient_buckets(const Chunk& chunk) const {
  // Megatron-LM, megatron/core/distributed/distributed_data_parallel.py and megatron/training:
  // buckets of max(40,000,000, 1,000,000 · dp) parameters, on the first pipeline rank's first chunk
  // only; all other reductions run beside passes of other chunks or ranks anyway.
  const LayerRange& front = chunk.layers.front();
  const bool first = front.first == 0 && (!state_->groups.empty() || front.module == ModuleId{0});
  if (!plan().overlap_gradients || plan().zero >= 2 || !first) {
    return 1;
  }
  constexpr double kBucket = 40e6;
  constexpr double kBucketPerReplica = 1e6;
  const int copies = state_->blocks[State::module_of(chunk.layers)].weight_copies();
  const double bucket = std::max(kBucket, kBucketPerReplica * copies);
  const LocalParameters local = state_->local_parameters(chunk.layers);
  return std::max(
      1, static_cast<int>(std::ceil((local.trained_dense + local.trained_experts) / bucket)));
}

TransferCost ModelLowering::weight_gather(const Chunk& chunk) const {
  const LocalParameters local = state_->local_parameters(chunk.layers);
  return over_replicas(CollectiveKind::AllGather, chunk,
                       state_->bytes.gathered * (local.outer + local.dense),
                       state_->bytes.gathered * local.experts);
}

TransferCost ModelLowering::gradient_scatter(const Chunk& chunk) const {
  const LocalParameters local = state_->local_parameters(chunk.layers);
  return over_replicas(CollectiveKind::ReduceScatter, chunk,
                       state_->bytes.reduced * local.trained_dense,
                       state_->bytes.reduced * local.trained_experts);
}

bool ModelLowering::reshards() const { return plan().zero == 3; }

Duration ModelLowering::optimizer_step(std::span<const Chunk> chunks_of_rank) const {
  const LocalParameters local = state_->local_parameters_of(chunks_of_rank);
  const TrainingState& bytes = state_->bytes;
  const std::size_t module = State::module_of(chunks_of_rank);
  const double parameters =
      state_->shared_from(1, state_->blocks[module], local.trained_dense, local.trained_experts);
  double seconds = tied_seconds(chunks_of_rank) + clipping_seconds(bytes.gradients * parameters) +
                   memory_seconds(cluster().gpu, bytes.step_traffic * parameters);
  if (plan().zero == 1) {
    seconds +=
        collective_seconds(cluster(), CollectiveKind::AllGather,
                           bytes.weights * local.trained_dense, state_->replicas[module]) +
        collective_seconds(cluster(), CollectiveKind::AllGather,
                           bytes.weights * local.trained_experts, state_->expert_replicas[module]);
  }
  return round_to_duration(seconds, "optimizer step");
}

Bytes ModelLowering::optimizer_transient(std::span<const Chunk> chunks_of_rank) const {
  const LocalParameters local = state_->local_parameters_of(chunks_of_rank);
  const GpuBlock& block = state_->blocks[State::module_of(chunks_of_rank)];
  const double dense = state_->shared_from(1, block, local.trained_dense, 0.0);
  const double experts = state_->shared_from(1, block, 0.0, local.trained_experts);
  return round_to_bytes(state_->bytes.step_scratch * (dense + experts) +
                            state_->bytes.group_scratch * std::max(dense, experts),
                        "scratch of the optimizer");
}

double ModelLowering::clipping_seconds(double gradient_bytes) const {
  if (!plan().clip_gradients || gradient_bytes == 0.0) {
    return 0.0;
  }
  const int gpus = plan().rank_gpus() * plan().pp * plan().dp;
  const int members = plan().zero > 0 ? gpus : plan().rank_gpus() * plan().pp;
  const int nodes = (gpus + cluster().gpus_per_node - 1) / cluster().gpus_per_node;
  return memory_seconds(cluster().gpu, gradient_bytes) +
         collective_seconds(cluster(), CollectiveKind::AllReduce, sizeof(float),
                            {.members = members,
                             .nodes = std::min(nodes, members),
                             .leaves = cluster().leaf_of_node(std::min(nodes, members) - 1) + 1});
}

double ModelLowering::tied_seconds(std::span<const Chunk> chunks_of_rank) const {
  double seconds = 0.0;
  for (std::size_t m = 0; m < state_->model.modules.size(); ++m) {
    const LmmModule& module = state_->model.modules[m];
    bool first = false;
    bool last = false;
    for (const Chunk& chunk : chunks_of_rank) {
      for (const LayerRange& range : chunk.layers) {
        const bool own = range.module.row() == m && range.count > 0;
        first = first || (own && range.first == 0);
        last = last || (own && range.first + range.count == module.spec.layers);
      }
    }
    if (module.tied && module.trained && module.spec.lora_rank == 0 && first != last) {
      const GpuBlock& block = state_->blocks[m];
      const int from = cluster().node_of(block.gpu(0, 0, 0));
      const int to = cluster().node_of(block.gpu(block.pp - 1, 0, 0));
      const bool apart = from != to;
      const bool leaves = cluster().leaf_of_node(from) != cluster().leaf_of_node(to);
      seconds += collective_seconds(
          cluster(), CollectiveKind::AllReduce,
          state_->bytes.reduced * module.spec.vocabulary * module.spec.hidden / block.tp,
          {.members = 2, .nodes = apart ? 2 : 1, .leaves = leaves ? 2 : 1});
    }
  }
  return seconds;
}

bool ModelLowering::trains(ModuleId module) const {
  return state_->problem.modules[module.row()].trained;
}

std::vector<double> ModelLowering::module_flops(const Batch& batch, MicrobatchId microbatch) const {
  std::vector<double> flops;
  for (std::size_t i = 0; i < state_->table.modules().size(); ++i) {
    const PlacedModule& module = state_->table.modules()[i];
    // Backward counts as much as forward for each of its halves (PaLM, arXiv 2204.02311 app. B).
    // With adapters nothing else has a gradient of weights.
    const bool adapters = module.spec.lora_rank > 0;
    const double backward = module.backward ? 1.0 : 0.0;
    const double weights = module.trained ? 1.0 : 0.0;
    const WorkShape shape = shape_of(batch, microbatch, ModuleId{i}, module.mask);
    flops.push_back((1.0 + backward + (adapters ? 0.0 : weights)) * forward_flops(module, shape) +
                    (1.0 + backward + weights) * adapter_flops(module, shape));
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
  return cluster().gpu.peak_flops_per_s() * plan().rank_gpus() * plan().pp *
         plan().simulated_replicas();
}

}  // namespace dipsim
