// SPDX-License-Identifier: Apache-2.0
// Which directions of which links a message between two GPUs passes.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/core/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace dipsim {

/// Kinds of links that flows share, by their lower end.
enum class LinkKind : std::uint8_t {
  NvLink,  ///< of a GPU
  Lane,    ///< PCIe between a GPU and its switch
  Host,    ///< between a PCIe switch and the host
  Card,    ///< of a network card, one per GPU
  Uplink,  ///< between a leaf and the spines
};

inline constexpr std::size_t kLinkKinds = 5;

/// One direction of one link.
struct LinkEnd {
  LinkKind kind = LinkKind::Card;
  bool out = true;  ///< away from the GPU
  int owner = 0;    ///< the GPU (NvLink, Lane, Card), PCIe switch or leaf, counted over the cluster

  friend bool operator==(const LinkEnd&, const LinkEnd&) = default;
};

/// Routes of the topology of a cluster (sim/cluster/topology.hpp), told apart by structure: the
/// positions of both GPUs in their nodes, and whether they share the node or the leaf. Each
/// structure is searched once, in a cluster of a few nodes that has them all. Of several cards
/// below one PCIe switch a GPU uses its own.
class Ways {
 public:
  explicit Ways(const Cluster& cluster);

  /// From one GPU to another, in order; nothing from a GPU to itself. Replaced by the next call.
  std::span<const LinkEnd> between(GpuId from, GpuId to);

  [[nodiscard]] int switch_of(GpuId gpu) const;
  /// Leaf switch that the card of this GPU hangs off.
  [[nodiscard]] int leaf_of(GpuId gpu) const;
  [[nodiscard]] int switches() const;
  [[nodiscard]] int leaves() const;

 private:
  /// A link of a structure: that of the owner at the sender's or the receiver's end.
  struct Step {
    LinkKind kind;
    bool out;
    bool at_target;  ///< belongs to the node (or leaf) of the receiver
    int index;       ///< GPU or switch in the node; rail of a leaf
  };

  [[nodiscard]] std::vector<Step> search(int relation, int from, int to) const;
  [[nodiscard]] int owner_of(const Step& step, int from_node, int to_node) const;
  [[nodiscard]] int rails() const;

  const Cluster& cluster_;
  std::unordered_map<int, std::vector<Step>> known_;  ///< by structure
  std::vector<LinkEnd> found_;
};

}  // namespace dipsim
