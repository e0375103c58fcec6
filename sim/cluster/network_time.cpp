// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/network_time.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace dipsim {

namespace {

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;

int ceil_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

/// Links of a group in bytes per second, before the share that software reaches.
struct GroupLinks {
  double nvlink = 0.0;  ///< of one GPU
  double cards = 0.0;   ///< of all members on one node

  GroupLinks(const Cluster& cluster, const CollectiveGroup& group)
      : nvlink(cluster.nvlink_gbytes_per_s * kGiga),
        cards(cluster.nic_gbytes_per_s * kGiga * group.per_node()) {
    if (cluster.fabric && group.leaves > 1) {
      // Rings and trees cross to the next leaf once per leaf, and the groups of the other GPUs do
      // so at the same time: of the uplinks, `nodes per leaf` cards' worth is there for one
      // crossing.
      const double nodes_per_leaf = static_cast<double>(group.nodes) / group.leaves;
      cards *= std::min(1.0, nodes_per_leaf / cluster.fabric->oversubscription);
    }
  }
};

/// Hops of one algorithm, and bytes through the busiest link over the bytes of the collective.
struct Route {
  double nvlink_hops = 0.0;
  double nic_hops = 0.0;
  double traffic = 0.0;
};

/// NCCL's steps: n−1 around the ring, twice that for all-reduce; one per node crosses the network.
Route ring_route(CollectiveKind kind, const CollectiveGroup& group) {
  const double rounds = kind == CollectiveKind::AllReduce ? 2.0 : 1.0;
  return {.nvlink_hops = rounds * (group.members - group.nodes),
          .nic_hops = rounds * (group.nodes - 1),
          .traffic = bus_factor(kind, group.members)};
}

/// Up and down a chain of the node's GPUs and a binary tree of the nodes; everything passes every
/// GPU twice, so the tuner counts half of the bandwidth.
Route tree_route(const CollectiveGroup& group) {
  return {.nvlink_hops = 2.0 * (group.per_node() - 1),
          .nic_hops = 2.0 * ceil_log2(group.nodes),
          .traffic = 2.0};
}

double protocol_seconds(const ProtocolCurve& curve, const Route& route, double bytes,
                        const GroupLinks& links, const CollectiveGroup& group) {
  double speed = std::numeric_limits<double>::infinity();
  if (group.members > group.nodes) {
    speed = links.nvlink * curve.nvlink_fraction.value;
  }
  if (group.nodes > 1) {
    speed = std::min(speed, links.cards * curve.nic_fraction.value);
  }
  return (curve.base_us.value + route.nvlink_hops * curve.nvlink_hop_us.value +
          route.nic_hops * curve.nic_hop_us.value) *
             kMicro +
         route.traffic * bytes / speed;
}

/// Every GPU sends its bytes to the switch once and its part of the result once.
double nvls_traffic(int gpus) { return 1.0 + 1.0 / gpus; }

double nvls_seconds(const NvlsCurve& curve, double bytes, const GroupLinks& links, int gpus) {
  const double bus_mbytes = bus_factor(CollectiveKind::AllReduce, gpus) * bytes / 1e6;
  const double start = curve.base_us.value +
                       curve.ramp_us.value * bus_mbytes / (bus_mbytes + curve.ramp_mbytes.value);
  return start * kMicro + nvls_traffic(gpus) * bytes / (links.nvlink * curve.nvlink_fraction.value);
}

/// The slower of the two stages of the pipeline: a node of two trees sends its bytes up and down.
double nvls_tree_seconds(const HardwareProfile& profile, double bytes, const GroupLinks& links,
                         const CollectiveGroup& group) {
  const NvlsTreeCurve& curve = *profile.nvls_tree;
  const double in_node =
      nvls_traffic(group.per_node()) * bytes / (links.nvlink * profile.nvls->nvlink_fraction.value);
  const double fraction =
      group.nodes == 2 ? curve.two_nodes_nic_fraction.value : curve.nic_fraction.value;
  const double traffic = 2.0 * (group.nodes - 1) / group.nodes;
  const double start = curve.base_us.value + 2.0 * ceil_log2(group.nodes) * curve.nic_hop_us.value;
  return start * kMicro + std::max(in_node, traffic * bytes / (links.cards * fraction));
}

double all_to_all_seconds(const Cluster& cluster, double bytes, const CollectiveGroup& group) {
  const AllToAllCurve& curve = cluster.gpu.profile.all_to_all;
  const int near = group.per_node() - 1;
  const int far = group.members - group.per_node();
  const double share = bytes / group.members;
  double nic =
      cluster.nic_gbytes_per_s * kGiga * cluster.gpu.profile.p2p_nic.bandwidth_fraction.value;
  if (cluster.fabric && group.leaves > 1) {
    nic /= cluster.fabric->oversubscription;  // everybody sends to the other leaves at once
  }
  const double start =
      curve.base_us.value + near * curve.nvlink_peer_us.value + far * curve.nic_peer_us.value;
  return start * kMicro +
         std::max(
             near * share / (cluster.nvlink_gbytes_per_s * kGiga * curve.nvlink_fraction.value),
             far * share / nic);
}

/// The three protocols of an algorithm.
using Protocols = std::array<const ProtocolCurve*, 3>;

void add_protocols(std::vector<CollectiveOption>& out, CollectiveAlgorithm algorithm,
                   const Protocols& curves, const Route& route, double bytes,
                   const GroupLinks& links, const CollectiveGroup& group) {
  for (std::size_t p = 0; p < curves.size(); ++p) {
    if (group.nodes == 1 || curves[p]->nic_fraction.value > 0.0) {
      out.push_back({algorithm, static_cast<Protocol>(p),
                     protocol_seconds(*curves[p], route, bytes, links, group)});
    }
  }
}

bool has_nvls_tree(const HardwareProfile& profile, const CollectiveGroup& group) {
  return profile.nvls && profile.nvls_tree && group.nodes > 1 && group.per_node() > 1;
}

void add_all_reduce(std::vector<CollectiveOption>& out, const HardwareProfile& profile,
                    double bytes, const GroupLinks& links, const CollectiveGroup& group) {
  if (group.nodes > 1) {
    add_protocols(out, CollectiveAlgorithm::Tree,
                  {&profile.tree_ll, &profile.tree_ll128, &profile.tree_simple}, tree_route(group),
                  bytes, links, group);
  } else if (profile.nvls) {
    out.push_back({CollectiveAlgorithm::Nvls, Protocol::Simple,
                   nvls_seconds(*profile.nvls, bytes, links, group.members)});
  }
  if (has_nvls_tree(profile, group)) {
    out.push_back({CollectiveAlgorithm::NvlsTree, Protocol::Simple,
                   nvls_tree_seconds(profile, bytes, links, group)});
  }
}

/// NCCL's p2p channels for one peer (src/enqueue.cc, scheduleP2pTasksToPlan): halved until all
/// ranks find room.
double channels_per_peer(const ChannelRule& rule, int ranks) {
  double channels = rule.per_peer.value;
  while (channels * ranks > rule.total.value && channels > 1.0) {
    channels = std::max(1.0, channels / 2.0);
  }
  return channels;
}

double between_nodes(const Cluster& cluster, const PeerPath& path) {
  const HardwareProfile& profile = cluster.gpu.profile;
  double card = cluster.nic_gbytes_per_s;
  if (cluster.fabric && !path.same_leaf) {
    card /= cluster.fabric->oversubscription;
  }
  return std::min(card * profile.p2p_nic.bandwidth_fraction.value,
                  channels_per_peer(profile.p2p_channels, path.communicator) *
                      profile.p2p_channels.gbytes_per_s.value);
}

double fastest_seconds(const Cluster& cluster, CollectiveKind kind, double bytes,
                       const CollectiveGroup& group) {
  double least = 0.0;
  for (const CollectiveOption& option : collective_options(cluster, kind, bytes, group)) {
    least = least == 0.0 ? option.seconds : std::min(least, option.seconds);
  }
  return least;
}

LinkTime modelled_message(const Cluster& cluster, double bytes, const PeerPath& path) {
  const HardwareProfile& profile = cluster.gpu.profile;
  if (path.same_node) {
    const LinkCurve& curve = profile.p2p_nvlink;
    return {
        .occupied = bytes / (cluster.nvlink_gbytes_per_s * kGiga * curve.bandwidth_fraction.value),
        .latency = curve.latency_us.value * kMicro};
  }
  return {.occupied = bytes / (between_nodes(cluster, path) * kGiga),
          .latency = profile.p2p_nic.latency_us.value * kMicro};
}

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  constexpr std::array<std::string_view, kCollectiveKinds> names = {
      "all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(CollectiveAlgorithm algorithm) {
  constexpr std::array<std::string_view, 5> names = {"ring", "tree", "NVLS", "NVLS tree", "direct"};
  return names[static_cast<std::size_t>(algorithm)];
}

std::string_view name_of(Protocol protocol) {
  constexpr std::array<std::string_view, 3> names = {"LL", "LL128", "Simple"};
  return names[static_cast<std::size_t>(protocol)];
}

double bus_factor(CollectiveKind kind, int members) {
  const double share = static_cast<double>(members - 1) / static_cast<double>(members);
  switch (kind) {
    case CollectiveKind::AllReduce:
      return 2.0 * share;
    case CollectiveKind::Broadcast:
      return 1.0;
    default:
      return share;
  }
}

std::vector<CollectiveOption> collective_options(const Cluster& cluster, CollectiveKind kind,
                                                 double bytes, const CollectiveGroup& group) {
  std::vector<CollectiveOption> out;
  if (group.members <= 1 || bytes <= 0.0) {
    return out;
  }
  if (kind == CollectiveKind::AllToAll) {
    out.push_back(
        {CollectiveAlgorithm::Direct, Protocol::Simple, all_to_all_seconds(cluster, bytes, group)});
    return out;
  }
  const HardwareProfile& profile = cluster.gpu.profile;
  const GroupLinks links(cluster, group);
  const bool all_reduce = kind == CollectiveKind::AllReduce;
  if (!(all_reduce && has_nvls_tree(profile, group))) {
    add_protocols(out, CollectiveAlgorithm::Ring,
                  {&profile.ring_ll, &profile.ring_ll128, &profile.ring_simple},
                  ring_route(kind, group), bytes, links, group);
  }
  if (all_reduce) {
    add_all_reduce(out, profile, bytes, links, group);
  }
  return out;
}

double collective_seconds(const Cluster& cluster, CollectiveKind kind, double bytes,
                          const CollectiveGroup& group) {
  const auto model = [&](double size) { return fastest_seconds(cluster, kind, size, group); };
  const MeasuredTable* const table = find_collective(cluster.measured, kind, group);
  return table == nullptr || bytes <= 0.0 ? model(bytes) : measured_seconds(*table, bytes, model);
}

LinkTime p2p_time(const Cluster& cluster, double bytes, const PeerPath& path) {
  const MeasuredTable* const table =
      find_messages(cluster.measured, path.same_node, path.communicator);
  if (table == nullptr || bytes <= 0.0) {
    return modelled_message(cluster, bytes, path);
  }
  const auto model = [&](double size) {
    const LinkTime time = modelled_message(cluster, size, path);
    return time.occupied + time.latency;
  };
  const double total = measured_seconds(*table, bytes, model);
  const double latency = std::min(total, table->points.front().us * kMicro);
  return {.occupied = total - latency, .latency = latency};
}

double host_copy_seconds(const Cluster& cluster, double bytes) {
  const LinkCurve& curve = cluster.gpu.profile.host;
  return curve.latency_us.value * kMicro +
         bytes / (cluster.host_gbytes_per_s * kGiga * curve.bandwidth_fraction.value);
}

}  // namespace dipsim
