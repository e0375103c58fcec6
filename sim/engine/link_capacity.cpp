// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/link_capacity.hpp"

#include <algorithm>
#include <cmath>

namespace dipsim {

namespace {

/// Of NVLinks, or of PCIe between peers in a node without.
double peer_fraction(const HardwareProfile& p) {
  const double best =
      std::max({p.p2p_nvlink.bandwidth_fraction.value, p.ring_simple.nvlink_fraction.value,
                p.ring_ll128.nvlink_fraction.value, p.tree_simple.nvlink_fraction.value,
                p.all_to_all.nvlink_fraction.value});
  return p.nvls ? std::max(best, p.nvls->nvlink_fraction.value) : best;
}

double card_fraction(const HardwareProfile& p) {
  const double best =
      std::max({p.p2p_nic.bandwidth_fraction.value, p.ring_simple.nic_fraction.value,
                p.tree_simple.nic_fraction.value});
  return p.nvls_tree ? std::max({best, p.nvls_tree->nic_fraction.value,
                                 p.nvls_tree->two_nodes_nic_fraction.value})
                     : best;
}

std::int64_t to_bytes_per_s(double gbytes_per_s) {
  return std::max<std::int64_t>(1, std::llround(gbytes_per_s * kBytesPerGb));
}

}  // namespace

LinkCapacities link_capacities(const Cluster& cluster) {
  const HardwareProfile& profile = cluster.gpu.profile;
  const double peers = cluster.nvlink_gbytes_per_s * peer_fraction(profile);
  const double card = cluster.nic_gbytes_per_s * card_fraction(profile);
  const double host = std::max(cluster.host_gbytes_per_s, cluster.gpu.pcie_gbytes_per_s.value) *
                      profile.host.bandwidth_fraction.value;
  const bool pcie_peers = cluster.node_links.kind == NodeKind::Pcie;
  const double lane = std::max({card, host, pcie_peers ? peers : 0.0});
  double uplink = card;
  if (cluster.fabric) {
    const Fabric& fabric = *cluster.fabric;
    const bool rails = fabric.kind == FabricKind::RailOptimised;
    uplink *= fabric.nodes_per_leaf * (rails ? 1 : cluster.gpus_per_node) / fabric.oversubscription;
  }
  return {to_bytes_per_s(peers), to_bytes_per_s(lane), to_bytes_per_s(lane), to_bytes_per_s(card),
          to_bytes_per_s(uplink)};
}

}  // namespace dipsim
