// SPDX-License-Identifier: Apache-2.0
#include "models/cost_model.hpp"

#include "models/ranks.hpp"
#include "sim/cluster/kernel_time.hpp"
#include "sim/cluster/network_time.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <variant>

namespace dipsim {

namespace {

/// Times each kind of operator.
struct OperatorTimer {
  const Cluster& cluster;
  const PlacedModule& module;

  double operator()(const GemmShape& gemm) const { return gemm_seconds(cluster.gpu, gemm); }

  double operator()(const AttentionShape& attention) const {
    return attention_seconds(cluster.gpu, attention);
  }

  double operator()(const MemoryTraffic& traffic) const {
    return memory_seconds(cluster.gpu, static_cast<double>(traffic.bytes));
  }

  double operator()(const GroupTraffic& traffic) const {
    return collective_seconds(cluster, traffic.kind, static_cast<double>(traffic.bytes),
                              group_of(traffic.group));
  }

  [[nodiscard]] CollectiveGroup group_of(ParallelGroup group) const {
    switch (group) {
      case ParallelGroup::Tensor:
        return tensor_group(cluster, module.tp);
      case ParallelGroup::Context:
        return context_group(cluster, module.tp, module.cp);
      case ParallelGroup::Expert:
        break;
    }
    return tensor_group(cluster, module.ep);
  }
};

/// What shows of a collective that runs piece by piece with the product beside it, as long as
/// `product`: its first piece, and what outlasts the product.
double exposed_seconds(double collective, double product, int tp) {
  const double piece = collective / tp;
  return piece + std::max(0.0, collective - piece - product);
}

bool is_traffic(const Operator& op, ParallelGroup group) {
  const auto* const traffic = std::get_if<GroupTraffic>(&op.shape);
  return traffic != nullptr && traffic->group == group;
}

/// What outlasts the attention beside it of a ring's exchange of keys and values: attention to the
/// own piece runs beside the first one (arXiv 2310.01889 §3).
double exposed_ring_seconds(double exchange, double attention, int cp) {
  return std::max(0.0, exchange - attention * (cp - 1) / cp);
}

/// Kernels of one stream run one after the other, but the host must have issued each of them first.
double total_seconds(std::span<const Operator> operators, const Cluster& cluster,
                     const PlacedModule& module) {
  double seconds = 0.0;
  double exchange = 0.0;
  double attention = 0.0;
  int kernels = 0;
  const auto product_at = [&](std::size_t i) {
    return i < operators.size() && std::holds_alternative<GemmShape>(operators[i].shape)
               ? operator_seconds(operators[i], cluster, module)
               : 0.0;
  };
  for (std::size_t i = 0; i < operators.size(); ++i) {
    double own = operator_seconds(operators[i], cluster, module);
    kernels += own > 0.0 ? 1 : 0;
    if (module.async_tp && is_traffic(operators[i], ParallelGroup::Tensor)) {
      own = exposed_seconds(own, std::max(product_at(i + 1), product_at(i - 1)), module.tp);
    }
    if (module.context == ContextExchange::Ring &&
        is_traffic(operators[i], ParallelGroup::Context)) {
      exchange += std::exchange(own, 0.0);
    }
    attention += std::holds_alternative<AttentionShape>(operators[i].shape) ? own : 0.0;
    seconds += own;
  }
  seconds += exposed_ring_seconds(exchange, attention, module.cp);
  return std::max(seconds, issue_seconds(cluster.gpu, kernels));
}

}  // namespace

double operator_seconds(const Operator& op, const Cluster& cluster, const PlacedModule& module) {
  return std::visit(OperatorTimer{cluster, module}, op.shape);
}

PartCost cost_of(const PlacedModule& module, Part part, const WorkShape& shape,
                 const Cluster& cluster, LayerKind kind) {
  const PartOperators operators = operators_of(module, part, shape, kind);
  PartCost cost;
  cost.f = total_seconds(operators.forward, cluster, module);
  cost.transient = operators.transient;
  if (!module.backward) {
    return cost;
  }
  cost.i = total_seconds(operators.input_gradient, cluster, module);
  cost.selective = total_seconds(operators.selective, cluster, module);
  cost.layer_input = operators.layer_input;
  for (const SavedTensor& tensor : operators.saved) {
    if (module.trained || !tensor.for_weights_only) {
      cost.kept += tensor.bytes;
      cost.cheap += tensor.cheap ? tensor.bytes : 0;
    }
  }
  if (module.trained) {
    cost.w = total_seconds(operators.weight_gradient, cluster, module);
    cost.held_for_weights = operators.held_for_weights;
  }
  return cost;
}

CostTable::CostTable(std::vector<PlacedModule> modules, Cluster cluster)
    : modules_(std::move(modules)), cluster_(std::move(cluster)) {}

const ModuleCost& CostTable::of(ModuleId module, const WorkShape& shape) const {
  const auto key = std::pair(module, shape);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) {
      return found->second;
    }
  }
  const PlacedModule& placed = modules_[module.row()];
  ModuleCost cost{.first = cost_of(placed, Part::First, shape, cluster_),
                  .blocks = {},
                  .last = cost_of(placed, Part::Last, shape, cluster_)};
  std::array<bool, kLayerKinds> done{};
  for (int layer = 0; layer < placed.spec.layers; ++layer) {
    const LayerKind kind = placed.spec.kind_of(layer);
    if (!std::exchange(done[kind.index()], true)) {
      cost.blocks[kind.index()] = cost_of(placed, Part::Block, shape, cluster_, kind);
    }
  }
  const std::scoped_lock lock(mutex_);
  return known_.try_emplace(key, cost).first->second;
}

}  // namespace dipsim
