// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/core/json.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string_view>

namespace dipsim {

enum class NodeKind : std::uint8_t {
  NvSwitch,  ///< every GPU reaches every other of its node at the speed of its NVLinks
  Pcie       ///< GPUs below PCIe switches, these below the host
};

/// What joins the GPUs of a node.
struct NodeLinks {
  NodeKind kind = NodeKind::NvSwitch;
  int gpus_per_switch = 1;  ///< of a PCIe switch; divides the GPUs of the node
  friend bool operator==(const NodeLinks&, const NodeLinks&) = default;
};

enum class FabricKind : std::uint8_t {
  RailOptimised,  ///< one leaf switch per position in the node: card k of every node hangs off leaf
                  ///< k
  FatTree         ///< one leaf switch for all cards of its nodes
};

std::string_view name_of(FabricKind kind);

/// Two layers of switches between the cards: leaves, and spines that join the leaves.
struct Fabric {
  FabricKind kind = FabricKind::RailOptimised;
  int nodes_per_leaf = 1;         ///< whose cards (one rail of them) hang off one leaf
  double oversubscription = 1.0;  ///< down to up bandwidth of a leaf
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

/// {"kind": "nvswitch"} or {"kind": "pcie", "gpus_per_switch": 4}.
NodeLinks read_node_links(const JsonValue& value, int gpus_per_node);
nlohmann::json to_json(const NodeLinks& links);

/// {"kind": "fat-tree", "nodes_per_leaf": 4, "oversubscription": 2}.
Fabric read_fabric(const JsonValue& value);
nlohmann::json to_json(const Fabric& fabric);

}  // namespace dipsim
