// SPDX-License-Identifier: Apache-2.0
// Topologies of regular clusters.
#include "sim/cluster/topology.hpp"

#include <utility>

namespace dipsim {

namespace {

/// Leaf switches, made when the first card asks for one, and the spine above them.
class FabricBuilder {
 public:
  FabricBuilder(Topology& topology, const Cluster& cluster)
      : topology_(topology), cluster_(cluster) {}

  void attach(int card, int node, int position) {
    const int leaf = leaf_for(node, position);
    topology_.connect(card, leaf, cluster_.nic_gbytes_per_s);
  }

 private:
  [[nodiscard]] bool rails() const {
    return cluster_.fabric && cluster_.fabric->kind == FabricKind::RailOptimised;
  }

  /// Row of the leaf: leaves are numbered group by group of nodes, in it rail by rail.
  int leaf_for(int node, int position) {
    const int per_group = rails() ? cluster_.gpus_per_node : 1;
    const int group = cluster_.leaf_of_node(node);
    const auto number = static_cast<std::size_t>(group * per_group + (rails() ? position : 0));
    while (leaves_.size() <= number) {
      const int index = static_cast<int>(leaves_.size());
      leaves_.push_back(topology_.add({.kind = DeviceKind::Leaf, .index = index}));
      connect_to_spine(leaves_.back());
    }
    return leaves_[number];
  }

  void connect_to_spine(int leaf) {
    if (!cluster_.fabric) {
      return;
    }
    if (spine_ < 0) {
      spine_ = topology_.add({.kind = DeviceKind::Spine});
    }
    const Fabric& fabric = *cluster_.fabric;
    const int cards = fabric.nodes_per_leaf * (rails() ? 1 : cluster_.gpus_per_node);
    const double share = cluster_.nic_gbytes_per_s / fabric.oversubscription;
    topology_.connect(leaf, spine_, share * cards, share);
  }

  Topology& topology_;
  const Cluster& cluster_;
  std::vector<int> leaves_;
  int spine_ = -1;
};

std::vector<int> add_node(Topology& topology, const Cluster& cluster, int node) {
  if (cluster.node_links.kind == NodeKind::Pcie) {
    return add_pcie_node(topology, node, cluster.gpus_per_node, cluster.node_links.gpus_per_switch,
                         cluster.nvlink_gbytes_per_s, cluster.nic_gbytes_per_s);
  }
  return add_nvswitch_node(topology, node, cluster.gpus_per_node, cluster.nvlink_gbytes_per_s,
                           cluster.nic_gbytes_per_s, cluster.gpu.pcie_gbytes_per_s.value);
}

}  // namespace

std::vector<int> add_nvswitch_node(Topology& topology, int node, int gpus,
                                   double nvlink_gbytes_per_s, double nic_gbytes_per_s,
                                   double pcie_gbytes_per_s) {
  const int nvswitch = topology.add({.kind = DeviceKind::NvSwitch, .node = node});
  std::vector<int> cards;
  for (int i = 0; i < gpus; ++i) {
    const int gpu = topology.add({.kind = DeviceKind::Gpu, .node = node, .index = i});
    const int pcie = topology.add({.kind = DeviceKind::PcieSwitch, .node = node, .index = i});
    cards.push_back(topology.add({.kind = DeviceKind::Nic, .node = node, .index = i}));
    topology.connect(gpu, nvswitch, nvlink_gbytes_per_s);
    topology.connect(gpu, pcie, pcie_gbytes_per_s);
    topology.connect(pcie, cards.back(), nic_gbytes_per_s);
  }
  return cards;
}

std::vector<int> add_pcie_node(Topology& topology, int node, int gpus, int gpus_per_switch,
                               double pcie_gbytes_per_s, double nic_gbytes_per_s) {
  const int host = topology.add({.kind = DeviceKind::Host, .node = node});
  std::vector<int> cards;
  int pcie = -1;
  for (int i = 0; i < gpus; ++i) {
    if (i % gpus_per_switch == 0) {
      pcie = topology.add(
          {.kind = DeviceKind::PcieSwitch, .node = node, .index = i / gpus_per_switch});
      topology.connect(pcie, host, pcie_gbytes_per_s, pcie_gbytes_per_s / gpus_per_switch);
    }
    const int gpu = topology.add({.kind = DeviceKind::Gpu, .node = node, .index = i});
    topology.connect(gpu, pcie, pcie_gbytes_per_s);
    cards.push_back(topology.add({.kind = DeviceKind::Nic, .node = node, .index = i}));
    topology.connect(pcie, cards.back(), nic_gbytes_per_s);
  }
  return cards;
}

Topology build_topology(const Cluster& cluster) {
  Topology topology;
  FabricBuilder fabric(topology, cluster);
  for (int node = 0; node < cluster.nodes; ++node) {
    const std::vector<int> cards = add_node(topology, cluster, node);
    for (int i = 0; i < cluster.gpus_per_node; ++i) {
      fabric.attach(cards[static_cast<std::size_t>(i)], node, i);
    }
  }
  return topology;
}

}  // namespace dipsim
