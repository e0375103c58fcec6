// SPDX-License-Identifier: Apache-2.0
// Which links the transfers, copies and collectives of a placement load.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/core/rows.hpp"
#include "sim/engine/flow_network.hpp"
#include "sim/engine/link_capacity.hpp"
#include "sim/engine/ways.hpp"
#include "sim/graph/task_graph.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace dipsim {

/// The route of a group, and the cards that a node of it has at least.
struct Ring {
  std::int32_t route = -1;
  double cards = 1.0;
};

/// Routes and resources, made when they are first asked for.
class Routes {
 public:
  /// Throws Input where a cell has no GPU or one that the cluster lacks.
  Routes(const Cluster& cluster, const Placement& placement);

  std::int32_t transfer_route(RankId from, RankId to);
  std::int32_t copy_route(RankId rank, bool out);
  /// One ring per GPU of a rank, through the members in the order of their GPUs. Members on one
  /// node share what leaves it evenly among their cards, as NCCL's rings do; a stream is what
  /// passes the card of a node with the fewest.
  const Ring& ring_of(GroupId group);

  /// Bytes per second of a stream that is alone on a route.
  [[nodiscard]] double limit(std::int32_t route) const {
    return limits_[static_cast<std::size_t>(route)];
  }

  [[nodiscard]] bool loads_nothing(std::int32_t route) const {
    return rows_[static_cast<std::size_t>(route)].empty();
  }

  [[nodiscard]] Rows<LinkUse>& rows() { return rows_; }

  [[nodiscard]] std::vector<std::int64_t>& capacities() { return capacities_; }

 private:
  /// Members [begin, end) of a ring, on one node.
  struct NodeMembers {
    std::size_t begin = 0;
    std::size_t end = 0;

    [[nodiscard]] double count() const { return static_cast<double>(end - begin); }
  };

  void add_gpus(std::size_t rank, CellId cell);
  [[nodiscard]] bool pcie_peers() const;
  void add_peer_uses(RankId member, double streams);
  /// Between a member and its neighbour on another node, one way. Where peers and cards share the
  /// lane of a GPU, what passes it is counted for the peers.
  void add_card_uses(RankId member, RankId neighbour, bool out, double streams, bool has_peers);
  [[nodiscard]] int node_of(RankId rank) const;
  /// GPUs of a rank whose streams take the same link as its first one.
  [[nodiscard]] double sharers(LinkKind kind, std::span<const GpuId> gpus) const;
  void add_use(const LinkEnd& end, double streams);
  /// Adds the uses collected as a route; those of one resource become one.
  std::int32_t finish_row();

  const Cluster& cluster_;
  const Placement& placement_;
  Ways ways_;
  LinkCapacities capacity_;
  Rows<GpuId> gpus_;  ///< per rank
  std::array<std::size_t, kLinkKinds> first_end_{};
  std::vector<std::int32_t> resource_of_end_;
  std::unordered_map<std::int64_t, std::int32_t> route_of_pair_;
  std::vector<Ring> rings_;  ///< per group
  std::vector<double> limits_;
  std::vector<LinkUse> row_;
  std::vector<std::int64_t> capacities_;  ///< per resource
  Rows<LinkUse> rows_;
};

}  // namespace dipsim
