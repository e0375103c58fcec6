// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/pipeline_instance.hpp"

#include "schedulers/static/replicas.hpp"

#include <cstddef>
#include <utility>

namespace dipsim {

namespace {

/// For each pass the transfer that carries its result on, where there is one.
std::vector<TaskId> transfers(const TaskGraph& graph) {
  std::vector<TaskId> sent(graph.tasks.size());
  for (const Edge& edge : graph.edges) {
    if (graph.task(edge.to).op == Op::Transfer) {
      sent[edge.from.row()] = edge.to;
    }
  }
  return sent;
}

class InstanceBuilder {
 public:
  InstanceBuilder(const TaskGraph& graph, std::span<const StrategyId> chosen)
      : graph_(graph),
        chosen_(chosen),
        fixed_(static_memory(graph.placement)),
        transfer_(transfers(graph)) {}

  [[nodiscard]] PipelineInstance build(const Replica& replica) const {
    PipelineInstance instance{.shape = replica.shape, .ranks = replica.ranks};
    for (const RankId rank : replica.ranks) {
      instance.room.push_back(graph_.rank(rank).memory_limit - fixed_[rank.row()]);
    }
    if (replica.shape.microbatches == 0) {
      return instance;
    }
    instance.stages.resize(replica.stage_of.size());
    for (int rank = 0; rank < replica.shape.ranks; ++rank) {
      for (int chunk = 0; chunk < replica.shape.chunks; ++chunk) {
        const Pair& pair = graph_.pair(replica.pair(rank, {.chunk = chunk}));
        instance.stages[static_cast<std::size_t>(replica.stage(rank, chunk))] = {
            .rank = rank,
            .chunk = chunk,
            .has_backward = backward_of(pair).valid(),
            .has_weight = pair.w.valid()};
        if (pair.i.valid()) {
          instance.backward_op = Op::I;
        }
      }
    }
    instance.costs.reserve(replica.pairs.size());
    for (const PairId pair : replica.pairs) {
      instance.costs.push_back(cost_of(pair));
    }
    return instance;
  }

 private:
  static TaskId backward_of(const Pair& pair) { return pair.b.valid() ? pair.b : pair.i; }

  [[nodiscard]] HopCost hop_after(TaskId pass) const {
    const TaskId id = transfer_[pass.row()];
    return id.valid() ? HopCost{graph_.task(id).fixed, graph_.task(id).latency} : HopCost{};
  }

  [[nodiscard]] PairCost cost_of(PairId id) const {
    const Pair& pair = graph_.pair(id);
    const Strategy& strategy = graph_.strategy(chosen_[id.row()]);
    PairCost cost{.forward = duration_of(graph_, pair.f, chosen_),
                  .held = strategy.f_to_i,
                  .during_forward = graph_.task(pair.f).transient,
                  .sent = hop_after(pair.f)};
    const TaskId backward = backward_of(pair);
    if (!backward.valid()) {  // what F would hold dies with it
      cost.during_forward += std::exchange(cost.held, Bytes{});
      return cost;
    }
    cost.backward = duration_of(graph_, backward, chosen_);
    cost.during_backward = strategy.rebuilt + graph_.task(backward).transient;
    cost.returned = hop_after(backward);
    if (pair.w.valid()) {
      cost.weight = duration_of(graph_, pair.w, chosen_);
      cost.kept = strategy.i_to_w;
      cost.during_weight = graph_.task(pair.w).transient;
    }
    return cost;
  }

  const TaskGraph& graph_;
  std::span<const StrategyId> chosen_;
  std::vector<Bytes> fixed_;
  std::vector<TaskId> transfer_;  ///< per pass
};

}  // namespace

std::vector<PipelineInstance> pipeline_instances(const TaskGraph& graph,
                                                 std::span<const Replica> replicas,
                                                 std::span<const StrategyId> chosen) {
  const InstanceBuilder builder(graph, chosen);
  std::vector<PipelineInstance> instances;
  instances.reserve(replicas.size());
  for (const Replica& replica : replicas) {
    instances.push_back(builder.build(replica));
  }
  return instances;
}

std::vector<std::size_t> first_equal(std::span<const PipelineInstance> instances) {
  std::vector<std::size_t> first(instances.size());
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const PipelineInstance& own = instances[i];
    first[i] = i;
    for (std::size_t j = 0; j < i && first[i] == i; ++j) {
      const PipelineInstance& other = instances[j];
      if (first[j] == j && own.shape == other.shape && own.costs == other.costs &&
          own.room == other.room && own.stages == other.stages &&
          own.backward_op == other.backward_op) {
        first[i] = j;
      }
    }
  }
  return first;
}

}  // namespace dipsim
