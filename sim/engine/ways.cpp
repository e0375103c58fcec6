// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/ways.hpp"

#include "sim/cluster/topology.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace dipsim {

namespace {

enum Relation : int { kSameNode, kSameLeaf, kOtherLeaf, kRelations };

/// A node of its own, a second one on its leaf, and one on the next leaf.
Cluster miniature(const Cluster& cluster) {
  Cluster small = cluster;
  if (small.fabric) {
    small.fabric->nodes_per_leaf = std::min(2, small.fabric->nodes_per_leaf);
    small.nodes = std::min(cluster.nodes, small.fabric->nodes_per_leaf + 1);
  } else {
    small.nodes = std::min(2, cluster.nodes);
  }
  return small;
}

int level_of(DeviceKind kind) {
  constexpr std::array<int, 7> levels = {0, 1, 1, 2, 2, 3, 4};  // in the order of DeviceKind
  return levels[static_cast<std::size_t>(kind)];
}

/// None for the link from PCIe to a card: whatever takes it takes the card too, which is no faster.
std::optional<LinkKind> kind_of(DeviceKind lower, DeviceKind upper) {
  if (lower == DeviceKind::Gpu) {
    return upper == DeviceKind::NvSwitch ? LinkKind::NvLink : LinkKind::Lane;
  }
  if (lower == DeviceKind::PcieSwitch) {
    return upper == DeviceKind::Host ? std::optional(LinkKind::Host) : std::nullopt;
  }
  return lower == DeviceKind::Nic ? LinkKind::Card : LinkKind::Uplink;
}

}  // namespace

Ways::Ways(const Cluster& cluster) : cluster_(cluster) {}

int Ways::rails() const {
  const bool rails = cluster_.fabric && cluster_.fabric->kind == FabricKind::RailOptimised;
  return rails ? cluster_.gpus_per_node : 1;
}

int Ways::switch_of(GpuId gpu) const { return gpu.value / cluster_.node_links.gpus_per_switch; }

int Ways::switches() const { return cluster_.gpus() / cluster_.node_links.gpus_per_switch; }

int Ways::leaf_of(GpuId gpu) const {
  const int rail = rails() > 1 ? gpu.value % cluster_.gpus_per_node : 0;
  return cluster_.leaf_of_node(cluster_.node_of(gpu)) * rails() + rail;
}

int Ways::leaves() const { return (cluster_.leaf_of_node(cluster_.nodes - 1) + 1) * rails(); }

std::span<const LinkEnd> Ways::between(GpuId from, GpuId to) {
  const int from_node = cluster_.node_of(from);
  const int to_node = cluster_.node_of(to);
  const int width = cluster_.gpus_per_node;
  int relation = kSameNode;
  if (from_node != to_node) {
    relation =
        cluster_.leaf_of_node(from_node) == cluster_.leaf_of_node(to_node) ? kSameLeaf : kOtherLeaf;
  }
  const int a = from.value % width;
  const int b = to.value % width;
  const auto [known, fresh] = known_.try_emplace((relation * width + a) * width + b);
  if (fresh) {
    known->second = search(relation, a, b);
  }
  found_.clear();
  for (const Step& step : known->second) {
    found_.push_back(
        {.kind = step.kind, .out = step.out, .owner = owner_of(step, from_node, to_node)});
  }
  return found_;
}

int Ways::owner_of(const Step& step, int from_node, int to_node) const {
  const int node = step.at_target ? to_node : from_node;
  switch (step.kind) {
    case LinkKind::Host:
      return node * (cluster_.gpus_per_node / cluster_.node_links.gpus_per_switch) + step.index;
    case LinkKind::Uplink:
      return cluster_.leaf_of_node(node) * rails() + step.index;
    default:
      return node * cluster_.gpus_per_node + step.index;
  }
}

std::vector<Ways::Step> Ways::search(int relation, int from, int to) const {
  const Cluster small = miniature(cluster_);
  const Topology topology = build_topology(small);
  const int target = relation == kSameNode ? 0 : relation == kSameLeaf ? 1 : small.nodes - 1;
  const int width = small.gpus_per_node;
  const GpuId start(from);
  const GpuId goal(target * width + to);
  std::vector<Step> steps;
  int at = topology.device_of(start);
  for (const int link : topology.route(start, goal)) {
    const Link& taken = topology.links()[static_cast<std::size_t>(link)];
    const int next = taken.a == at ? taken.b : taken.a;
    const Device& here = topology.devices()[static_cast<std::size_t>(at)];
    const Device& there = topology.devices()[static_cast<std::size_t>(next)];
    const bool out = level_of(here.kind) < level_of(there.kind);
    const Device& lower = out ? here : there;
    const Device& upper = out ? there : here;
    if (const std::optional<LinkKind> kind = kind_of(lower.kind, upper.kind)) {
      const bool leaf = *kind == LinkKind::Uplink;
      const bool at_target = leaf ? !out : lower.node == target && relation != kSameNode;
      Step step{*kind, out, at_target, leaf ? lower.index % rails() : lower.index};
      if (*kind == LinkKind::Card && rails() == 1) {
        step.index = at_target ? to : from;  // of the cards below one switch its own
      }
      steps.push_back(step);
    }
    at = next;
  }
  return steps;
}

}  // namespace dipsim
