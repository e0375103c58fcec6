// SPDX-License-Identifier: Apache-2.0
#include "models/ranks.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace dipsim {

namespace {

/// A number that tensor parallelism must divide.
struct Divided {
  std::string what;
  int value;
};

std::vector<Divided> divided_by_tp(const LmmModel& model) {
  std::vector<Divided> all;
  for (const LmmModule& module : model.modules) {
    all.push_back({"heads of " + module.spec.name, module.spec.heads});
    all.push_back({"ffn columns of " + module.spec.name, module.spec.ffn});
    all.push_back({"hidden columns of " + module.spec.name, module.spec.hidden});
  }
  return all;
}

/// Key/value heads are shared out evenly, or copied to equally many GPUs each.
bool suits_key_heads(const LmmModel& model, int tp) {
  return std::ranges::all_of(model.modules, [tp](const LmmModule& module) {
    return module.spec.kv_groups % tp == 0 || tp % module.spec.kv_groups == 0;
  });
}

/// Groups share nodes evenly, or take whole nodes.
bool suits_nodes(const Cluster& cluster, int tp) {
  return cluster.gpus_per_node % tp == 0 || tp % cluster.gpus_per_node == 0;
}

bool is_legal_tp(const LmmModel& model, const Cluster& cluster, const std::vector<Divided>& divided,
                 int tp) {
  return suits_key_heads(model, tp) && suits_nodes(cluster, tp) &&
         std::ranges::all_of(divided, [tp](const Divided& d) { return d.value % tp == 0; });
}

/// The legal degree next to `wanted`; the smaller of two.
int nearest_legal_tp(const LmmModel& model, const Cluster& cluster, int wanted) {
  const std::vector<Divided> divided = divided_by_tp(model);
  int best = 1;
  for (int tp = 2; tp <= cluster.gpus(); ++tp) {
    if (is_legal_tp(model, cluster, divided, tp) &&
        std::abs(tp - wanted) < std::abs(best - wanted)) {
      best = tp;
    }
  }
  return best;
}

void check_tp(const LmmModel& model, const Cluster& cluster, int tp) {
  const auto refuse = [&](const std::string& why) {
    fail_input("parallel: tp", fmt::format("tp {} {}; nearest legal: {}", tp, why,
                                           nearest_legal_tp(model, cluster, tp)));
  };
  if (!suits_nodes(cluster, tp)) {
    refuse(fmt::format("neither divides the {} GPUs of a node of {} nor is a multiple of them",
                       cluster.gpus_per_node, cluster.name));
  }
  for (const Divided& divided : divided_by_tp(model)) {
    if (divided.value % tp != 0) {
      refuse(fmt::format("does not divide the {} {}", divided.value, divided.what));
    }
  }
  if (!suits_key_heads(model, tp)) {
    refuse("neither divides the key/value heads of every module nor is a multiple of them");
  }
}

void require_positive(std::string_view name, int value) {
  if (value < 1) {
    fail_input(fmt::format("parallel: {}", name),
               fmt::format("{} {}; at least 1 is needed", name, value));
  }
}

GpuId gpu_of(const ParallelPlan& plan, int replica, int position, int inside) {
  return GpuId((position * plan.dp + replica) * plan.tp + inside);
}

}  // namespace

void check_plan(const LmmModel& model, const Cluster& cluster, const ParallelPlan& plan) {
  require_positive("tp", plan.tp);
  require_positive("pp", plan.pp);
  require_positive("dp", plan.dp);
  check_tp(model, cluster, plan.tp);
  const int rest = cluster.gpus() / plan.tp;
  if (plan.pp > rest || plan.dp > rest || std::int64_t{plan.pp} * plan.dp > rest) {
    fail_input("parallel",
               fmt::format("tp {} × pp {} × dp {} exceeds the {} GPUs of {}: with this tp, "
                           "pp × dp is at most {}",
                           plan.tp, plan.pp, plan.dp, cluster.gpus(), cluster.name, rest));
  }
}

Problem make_problem(const std::vector<PlacedModule>& modules, const LmmModel& model,
                     const Cluster& cluster, const ParallelPlan& plan) {
  Problem problem;
  problem.replicas = plan.simulated_replicas();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    problem.modules.push_back({.name = modules[i].spec.name,
                               .layers = modules[i].spec.layers,
                               .layer_parameters = layer_parameters(modules[i]),
                               .inputs = model.modules[i].inputs,
                               .trained = modules[i].trained});
  }
  for (int replica = 0; replica < problem.replicas; ++replica) {
    for (int position = 0; position < plan.pp; ++position) {
      problem.ranks.push_back({.replica = replica,
                               .position = position,
                               .tp = plan.tp,
                               .cells = {CellId(problem.cells.size())},
                               .memory_limit = cluster.memory_limit(),
                               .reserved = cluster.reserved()});
      problem.cells.add_row();
      for (int inside = 0; inside < plan.tp; ++inside) {
        problem.cells.push_back(gpu_of(plan, replica, position, inside));
      }
    }
  }
  return problem;
}

CollectiveGroup tensor_group(const Cluster& cluster, int tp) {
  const int nodes = std::max(1, tp / cluster.gpus_per_node);
  return {.members = tp, .nodes = nodes, .leaves = cluster.leaf_of_node(nodes - 1) + 1};
}

CollectiveGroup replica_group(const Cluster& cluster, const ParallelPlan& plan) {
  // The replicas of one position lie side by side, but need not start on a node: the position that
  // is spread over the most nodes is the slowest. Wide tensor-parallel groups leave nodes between
  // the members that hold equal weights.
  CollectiveGroup worst{.members = plan.dp, .nodes = 1};
  for (int position = 0; position < plan.pp; ++position) {
    const int first = cluster.node_of(gpu_of(plan, 0, position, 0));
    const int last = cluster.node_of(gpu_of(plan, plan.dp - 1, position, 0));
    const int leaves = cluster.leaf_of_node(last) - cluster.leaf_of_node(first) + 1;
    worst.nodes = std::max(worst.nodes, std::min(last - first + 1, plan.dp));
    worst.leaves = std::max(worst.leaves, std::min(leaves, plan.dp));
  }
  return worst;
}

}  // namespace dipsim
