// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/fabric.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace dipsim {

namespace {

constexpr std::array<std::string_view, 2> kNodeKinds = {"nvswitch", "pcie"};
constexpr std::array<std::string_view, 2> kKinds = {"rail-optimised", "fat-tree"};
constexpr std::int64_t kMaxNodesPerLeaf = 100'000;
constexpr double kMaxOversubscription = 1e3;

}  // namespace

std::string_view name_of(FabricKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

NodeLinks read_node_links(const JsonValue& value, int gpus_per_node) {
  JsonObject object = value.object();
  NodeLinks links;
  links.kind = static_cast<NodeKind>(object.at("kind").one_of(kNodeKinds, "kind of node"));
  if (links.kind == NodeKind::Pcie) {
    const JsonValue per_switch = object.at("gpus_per_switch");
    links.gpus_per_switch = static_cast<int>(per_switch.integer(1, gpus_per_node));
    if (gpus_per_node % links.gpus_per_switch != 0) {
      per_switch.fail(fmt::format("{} does not divide the {} GPUs of a node", links.gpus_per_switch,
                                  gpus_per_node));
    }
  }
  object.finish();
  return links;
}

nlohmann::json to_json(const NodeLinks& links) {
  nlohmann::json out = {{"kind", kNodeKinds[static_cast<std::size_t>(links.kind)]}};
  if (links.kind == NodeKind::Pcie) {
    out["gpus_per_switch"] = links.gpus_per_switch;
  }
  return out;
}

Fabric read_fabric(const JsonValue& value) {
  JsonObject object = value.object();
  Fabric fabric;
  fabric.kind = static_cast<FabricKind>(object.at("kind").one_of(kKinds, "kind of fabric"));
  fabric.nodes_per_leaf =
      static_cast<int>(object.at("nodes_per_leaf").integer(1, kMaxNodesPerLeaf));
  fabric.oversubscription = object.at("oversubscription").number(1.0, kMaxOversubscription);
  object.finish();
  return fabric;
}

nlohmann::json to_json(const Fabric& fabric) {
  return {{"kind", name_of(fabric.kind)},
          {"nodes_per_leaf", fabric.nodes_per_leaf},
          {"oversubscription", fabric.oversubscription}};
}

}  // namespace dipsim
