// SPDX-License-Identifier: Apache-2.0
#include "models/ranks.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
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
    all.push_back({"columns of the shared experts of " + module.spec.name,
                   module.spec.experts.shared_ffn});  // 0: none, which everything divides
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

/// The modules, and no ranks yet.
Problem without_ranks(const std::vector<PlacedModule>& modules, const LmmModel& model,
                      const ParallelPlan& plan) {
  Problem problem;
  problem.replicas = plan.simulated_replicas();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    problem.modules.push_back({.name = modules[i].spec.name,
                               .layers = modules[i].spec.layers,
                               .layer_parameters = layer_parameters(modules[i]),
                               .inputs = model.modules[i].inputs,
                               .trained = modules[i].trained});
  }
  return problem;
}

/// Behind the ranks of its replica.
void add_rank(Problem& problem, const Cluster& cluster, const GpuBlock& block, int replica,
              int position, int member) {
  const bool first = problem.ranks.empty() || problem.ranks.back().replica != replica;
  problem.ranks.push_back({.replica = replica,
                           .position = first ? 0 : problem.ranks.back().position + 1,
                           .tp = block.tp,
                           .cp = block.cp,
                           .cells = {CellId(problem.cells.size())},
                           .memory_limit = cluster.memory_limit(),
                           .reserved = cluster.reserved()});
  problem.cells.add_row();
  double& speed = problem.ranks.back().speed;
  for (int inside = 0; inside < block.rank_gpus(); ++inside) {
    const GpuId gpu = block.gpu(position, member, inside);
    problem.cells.push_back(gpu);
    // They run every layer together: the slowest one is waited for.
    speed = std::min(speed, cluster.speed_of(gpu));
  }
}

/// Modules with experts.
std::vector<const ModuleSpec*> with_experts(const LmmModel& model) {
  std::vector<const ModuleSpec*> all;
  for (const LmmModule& module : model.modules) {
    if (module.spec.experts.count > 0) {
      all.push_back(&module.spec);
    }
  }
  return all;
}

bool is_legal_ep(const LmmModel& model, const Cluster& cluster, const ParallelPlan& plan, int ep) {
  const std::vector<const ModuleSpec*> modules = with_experts(model);
  return (ep == 1 || !modules.empty()) && plan.tp * plan.cp * plan.dp % ep == 0 &&
         suits_nodes(cluster, ep) && std::ranges::all_of(modules, [ep](const ModuleSpec* spec) {
           return spec->experts.count % ep == 0;
         });
}

void check_ep(const LmmModel& model, const Cluster& cluster, const ParallelPlan& plan) {
  const auto refuse = [&](const std::string& why) {
    int best = 1;
    for (int ep = 2; ep <= plan.tp * plan.cp * plan.dp; ++ep) {
      if (is_legal_ep(model, cluster, plan, ep) &&
          std::abs(ep - plan.ep) < std::abs(best - plan.ep)) {
        best = ep;
      }
    }
    fail_input("parallel: ep", fmt::format("ep {} {}; nearest legal: {}", plan.ep, why, best));
  };
  const std::vector<const ModuleSpec*> modules = with_experts(model);
  if (plan.ep > 1 && modules.empty()) {
    refuse("shares out experts, but no module has any");
  }
  if (plan.tp * plan.cp * plan.dp % plan.ep != 0) {
    refuse(fmt::format("does not divide the tp × cp × dp = {} GPUs of a pipeline position",
                       plan.tp * plan.cp * plan.dp));
  }
  if (!suits_nodes(cluster, plan.ep)) {
    refuse(fmt::format("neither divides the {} GPUs of a node of {} nor is a multiple of them",
                       cluster.gpus_per_node, cluster.name));
  }
  for (const ModuleSpec* const spec : modules) {
    if (spec->experts.count % plan.ep != 0) {
      refuse(fmt::format("does not divide the {} experts of {}", spec->experts.count, spec->name));
    }
  }
  if (!modules.empty() && plan.tp > 1 && !plan.sequence_parallel) {
    fail_input("parallel: sequence_parallel",
               "false beside experts and tp > 1: every GPU would send all tokens; nearest legal: "
               "true");
  }
}

void check_cp(const LmmModel& model, const Cluster& cluster, const ParallelPlan& plan) {
  if (!suits_nodes(cluster, plan.rank_gpus())) {
    int best = 1;
    for (int cp = 2; cp * plan.tp <= cluster.gpus(); ++cp) {
      if (suits_nodes(cluster, cp * plan.tp) && std::abs(cp - plan.cp) < std::abs(best - plan.cp)) {
        best = cp;
      }
    }
    fail_input("parallel: cp",
               fmt::format("tp {} × cp {} GPUs neither divide the {} GPUs of a node of {} nor are "
                           "a multiple of them; nearest legal: {}",
                           plan.tp, plan.cp, cluster.gpus_per_node, cluster.name, best));
  }
  if (plan.cp == 1) {
    return;
  }
  for (const LmmModule& module : model.modules) {
    if (module.spec.block == Block::Dit || module.spec.attention == AttentionKernel::WrittenOut) {
      fail_input("parallel: cp",
                 fmt::format("cp {}, but {} has cross attention or written-out attention; nearest "
                             "legal: 1",
                             plan.cp, module.spec.name));
    }
  }
}

/// So many GPUs of a block that hold the same weights, evenly over a position from its first to its
/// last.
CollectiveGroup across_position(const Cluster& cluster, const GpuBlock& block, int members) {
  // They need not start on a node: the position that is spread over the most nodes is the slowest.
  // Wide groups of what they share leave nodes between the members.
  CollectiveGroup worst{.members = members, .nodes = 1};
  const int stride = block.rank_gpus() * block.members / members;
  for (int position = 0; position < block.pp; ++position) {
    const GpuId begin = block.gpu(position, 0, 0);
    const int first = cluster.node_of(begin);
    const int last = cluster.node_of(GpuId(begin.value + (members - 1) * stride));
    const int leaves = cluster.leaf_of_node(last) - cluster.leaf_of_node(first) + 1;
    worst.nodes = std::max(worst.nodes, std::min(last - first + 1, members));
    worst.leaves = std::max(worst.leaves, std::min(leaves, members));
  }
  return worst;
}

}  // namespace

void check_plan(const LmmModel& model, const Cluster& cluster, const ParallelPlan& plan) {
  require_positive("tp", plan.tp);
  require_positive("pp", plan.pp);
  require_positive("dp", plan.dp);
  require_positive("cp", plan.cp);
  require_positive("ep", plan.ep);
  check_tp(model, cluster, plan.tp);
  if (std::int64_t{plan.tp} * plan.cp > cluster.gpus()) {
    fail_input("parallel: cp",
               fmt::format("tp {} × cp {} exceeds the {} GPUs of {}; nearest legal: {}", plan.tp,
                           plan.cp, cluster.gpus(), cluster.name, cluster.gpus() / plan.tp));
  }
  check_cp(model, cluster, plan);
  const int rest = cluster.gpus() / plan.rank_gpus();
  if (plan.pp > rest || plan.dp > rest || std::int64_t{plan.pp} * plan.dp > rest) {
    fail_input(
        "parallel",
        fmt::format("tp {} × {}pp {} × dp {} exceeds the {} GPUs of {}: with this {}, "
                    "pp × dp is at most {}",
                    plan.tp, plan.cp > 1 ? fmt::format("cp {} × ", plan.cp) : "", plan.pp, plan.dp,
                    cluster.gpus(), cluster.name, plan.cp > 1 ? "tp and cp" : "tp", rest));
  }
  check_ep(model, cluster, plan);
}

std::vector<GpuBlock> blocks_of(std::size_t modules, const ParallelPlan& plan) {
  return std::vector<GpuBlock>(
      modules, {.tp = plan.tp, .cp = plan.cp, .ep = plan.ep, .pp = plan.pp, .members = plan.dp});
}

std::vector<GpuBlock> blocks_of(std::span<const ModuleGroup> groups, const ParallelPlan& plan) {
  std::vector<std::size_t> widest(groups.size());
  std::iota(widest.begin(), widest.end(), std::size_t{0});
  std::ranges::stable_sort(widest, std::ranges::greater{},
                           [&](std::size_t module) { return groups[module].tp; });
  std::vector<GpuBlock> blocks(groups.size());
  int next = 0;
  for (const std::size_t module : widest) {
    const ModuleGroup& group = groups[module];
    blocks[module] = {
        .first = next, .tp = group.tp, .pp = group.pp, .members = group.copies * plan.dp};
    next += group.gpus() * plan.dp;
  }
  return blocks;
}

std::vector<int> legal_group_degrees(const LmmModel& model, const Cluster& cluster,
                                     const ParallelPlan& plan) {
  const std::vector<Divided> divided = divided_by_tp(model);
  std::vector<int> degrees = {1};
  if (!with_experts(model).empty() && !plan.sequence_parallel) {
    return degrees;  // as check_ep() says
  }
  for (int tp = 2; tp <= std::min(cluster.gpus_per_node, plan.tp * plan.pp); ++tp) {
    if (cluster.gpus_per_node % tp == 0 && tp % degrees.back() == 0 &&
        is_legal_tp(model, cluster, divided, tp)) {
      degrees.push_back(tp);
    }
  }
  return degrees;
}

void check_groups(std::span<const ModuleGroup> groups, const LmmModel& model,
                  const Cluster& cluster, const ParallelPlan& plan) {
  if (groups.size() != model.modules.size()) {
    fail_input("groups", fmt::format("{} for {} modules; each needs one", groups.size(),
                                     model.modules.size()));
  }
  if (plan.cp > 1 || plan.ep > 1) {
    fail_input("parallel",
               fmt::format("cp {} and ep {}: modules on GPUs of their own share neither "
                           "sequences nor experts; legal: cp 1 and ep 1",
                           plan.cp, plan.ep));
  }
  const std::vector<int> degrees = legal_group_degrees(model, cluster, plan);
  int gpus = 0;
  for (std::size_t m = 0; m < groups.size(); ++m) {
    if (std::ranges::find(degrees, groups[m].tp) == degrees.end()) {
      fail_input(fmt::format("group of {}", model.modules[m].spec.name),
                 fmt::format("tp {}; allowed: {}", groups[m].tp, fmt::join(degrees, ", ")));
    }
    gpus += groups[m].gpus();
  }
  if (gpus > plan.tp * plan.pp) {
    fail_input("groups", fmt::format("{} GPUs per replica; allowed: up to {} (tp {} × pp {})", gpus,
                                     plan.tp * plan.pp, plan.tp, plan.pp));
  }
}

Problem make_problem(const std::vector<PlacedModule>& modules, const LmmModel& model,
                     const Cluster& cluster, const ParallelPlan& plan,
                     std::span<const ModuleGroup> groups) {
  Problem problem = without_ranks(modules, model, plan);
  const std::vector<GpuBlock> blocks = blocks_of(groups, plan);
  for (int replica = 0; replica < problem.replicas; ++replica) {
    for (std::size_t m = 0; m < groups.size(); ++m) {
      for (int copy = 0; copy < groups[m].copies; ++copy) {
        for (int position = 0; position < groups[m].pp; ++position) {
          add_rank(problem, cluster, blocks[m], replica, position,
                   replica * groups[m].copies + copy);
        }
      }
    }
  }
  return problem;
}

Problem make_problem(const std::vector<PlacedModule>& modules, const LmmModel& model,
                     const Cluster& cluster, const ParallelPlan& plan) {
  Problem problem = without_ranks(modules, model, plan);
  const GpuBlock block = blocks_of(1, plan).front();
  for (int replica = 0; replica < problem.replicas; ++replica) {
    for (int position = 0; position < plan.pp; ++position) {
      add_rank(problem, cluster, block, replica, position, replica);
    }
  }
  return problem;
}

CollectiveGroup tensor_group(const Cluster& cluster, int tp) {
  const int nodes = std::max(1, tp / cluster.gpus_per_node);
  return {.members = tp, .nodes = nodes, .leaves = cluster.leaf_of_node(nodes - 1) + 1};
}

CollectiveGroup context_group(const Cluster& cluster, int tp, int cp) {
  const int nodes = std::clamp(tp * cp / cluster.gpus_per_node, 1, cp);
  return {.members = cp,
          .nodes = nodes,
          .leaves = std::min(
              nodes, cluster.leaf_of_node(std::max(1, tp * cp / cluster.gpus_per_node) - 1) + 1)};
}

CollectiveGroup replica_group(const Cluster& cluster, const GpuBlock& block) {
  return across_position(cluster, block, block.weight_copies());
}

CollectiveGroup expert_replica_group(const Cluster& cluster, const GpuBlock& block) {
  return across_position(cluster, block, block.expert_copies());
}

}  // namespace dipsim
