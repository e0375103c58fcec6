// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/cluster.hpp"

#include "sim/cluster/node_topology.hpp"
#include "sim/cluster/shipped.hpp"
#include "sim/core/json_behind.hpp"
#include "sim/core/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

namespace dipsim {

namespace {

constexpr std::int64_t kMaxNodes = 100'000;
constexpr std::int64_t kMaxGpusPerNode = 1'024;
constexpr double kMinLink = 1e-3;
constexpr double kMaxLink = 1e5;

Gpu gpu_of(const JsonValue& value) {
  return value.is_object() ? read_gpu(value)
                           : read_behind(value, [&] { return load_gpu(value.text()); });
}

double number_or(JsonObject& object, std::string_view key, double low, double high,
                 double fallback) {
  const auto value = object.find(key);
  return value ? value->number(low, high) : fallback;
}

/// A file of NCCL or nvidia-smi: "FILE", or {"file": "FILE", "gbytes_per_s_per_nvlink": 50}.
NodeTopology read_topology(const JsonValue& value, const Gpu& gpu) {
  LinkSpeeds speeds{.pcie_gbytes_per_s = gpu.pcie_gbytes_per_s.value};
  std::string name;
  if (value.is_object()) {
    JsonObject object = value.object();
    name = object.at("file").text();
    speeds.nvlink_gbytes_per_s = number_or(object, "gbytes_per_s_per_nvlink", kMinLink, kMaxLink,
                                           speeds.nvlink_gbytes_per_s);
    object.finish();
  } else {
    name = value.text();
  }
  return read_behind(value, [&] {
    return load_node_topology(std::filesystem::path(value.file()).parent_path() / name, speeds);
  });
}

/// A table of more GPUs or nodes than there are was measured elsewhere, or is a typing error.
void require_smaller(const JsonValue& value, const Cluster& cluster) {
  const std::vector<JsonValue> items = value.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const MeasuredTable& table = cluster.measured[i];
    if (table.members > cluster.gpus() || table.nodes > cluster.nodes) {
      items[i].fail(fmt::format("{} on {} GPUs in {} nodes; the cluster has {} GPUs in {} nodes",
                                kind_name(table), table.members, table.nodes, cluster.gpus(),
                                cluster.nodes));
    }
  }
}

void read_gpus_per_node(JsonObject& object, Cluster& cluster, const NodeTopology* found) {
  const auto count =
      found != nullptr ? object.find("gpus_per_node") : std::optional(object.at("gpus_per_node"));
  cluster.gpus_per_node =
      count ? static_cast<int>(count->integer(1, kMaxGpusPerNode)) : found->gpus;
  if (found != nullptr && cluster.gpus_per_node != found->gpus) {
    count->fail(fmt::format("is {} where the topology file has {} GPUs", cluster.gpus_per_node,
                            found->gpus));
  }
}

/// GPUs of a node and their links: what the file gives goes first, then the topology, then the GPU.
void read_node(JsonObject& object, Cluster& cluster) {
  std::optional<NodeTopology> found;
  if (const auto topology = object.find("topology")) {
    found = read_topology(*topology, cluster.gpu);
  }
  read_gpus_per_node(object, cluster, found ? &*found : nullptr);
  if (const auto node = object.find("node")) {
    cluster.node_links = read_node_links(*node, cluster.gpus_per_node);
  }
  const bool no_nvlink =
      cluster.node_links.kind == NodeKind::Pcie || (found && found->nvlink_gbytes_per_s == 0.0);
  double link =
      no_nvlink ? cluster.gpu.pcie_gbytes_per_s.value : cluster.gpu.nvlink_gbytes_per_s.value;
  if (found && !no_nvlink) {
    link = found->nvlink_gbytes_per_s;
  }
  cluster.nvlink_gbytes_per_s = number_or(object, "nvlink_gbytes_per_s", kMinLink, kMaxLink, link);
  const bool told = found && found->nic_gbytes_per_s > 0.0;
  cluster.nic_gbytes_per_s =
      told ? number_or(object, "nic_gbytes_per_s", kMinLink, kMaxLink, found->nic_gbytes_per_s)
           : object.at("nic_gbytes_per_s").number(kMinLink, kMaxLink);
}

}  // namespace

double Cluster::speed_of(GpuId gpu_id) const {
  const auto found = std::ranges::lower_bound(slow_gpus, gpu_id, {}, &SlowGpu::gpu);
  return found != slow_gpus.end() && found->gpu == gpu_id ? found->speed : 1.0;
}

Bytes Cluster::memory_limit() const {
  return round_to_bytes(gpu.memory_gib.value * kBytesPerGib * usable_memory_fraction,
                        "usable memory");
}

Bytes Cluster::reserved() const {
  return round_to_bytes(reserved_gib * kBytesPerGib, "reserved memory");
}

Cluster read_cluster(const JsonValue& value) {
  JsonObject object = value.object();
  Cluster cluster;
  cluster.name = object.at("name").text();
  cluster.title = object.at("title").text();
  if (const auto source = object.find("source")) {
    cluster.source = source->text();
  }
  cluster.gpu = gpu_of(object.at("gpu"));
  cluster.nodes = static_cast<int>(object.at("nodes").integer(1, kMaxNodes));
  read_node(object, cluster);
  if (const auto fabric = object.find("fabric")) {
    cluster.fabric = read_fabric(*fabric);
  }
  if (const auto measured = object.find("measured")) {
    cluster.measured = read_measured(*measured);
    require_smaller(*measured, cluster);
  }
  cluster.host_gbytes_per_s =
      number_or(object, "host_gbytes_per_s", 0.0, kMaxLink, cluster.gpu.pcie_gbytes_per_s.value);
  cluster.reserved_gib =
      number_or(object, "reserved_gib", 0.0, cluster.gpu.memory_gib.value, cluster.reserved_gib);
  cluster.usable_memory_fraction =
      number_or(object, "usable_memory_fraction", 1e-3, 1.0, cluster.usable_memory_fraction);
  if (const auto slow = object.find("slow_gpus")) {
    cluster.slow_gpus =
        with_speeds({}, slow_gpus(read_speed_entries(*slow), cluster.nodes, cluster.gpus_per_node));
  }
  object.finish();
  return cluster;
}

Cluster load_cluster(const std::string& name_or_path) {
  const JsonDocument document =
      JsonDocument::from_file(shipped_file("clusters", "cluster", name_or_path));
  return read_cluster(document.root());
}

nlohmann::json to_json(const Cluster& cluster) {
  nlohmann::json out = {{"name", cluster.name},
                        {"title", cluster.title},
                        {"source", cluster.source},
                        {"gpu", to_json(cluster.gpu)},
                        {"nodes", cluster.nodes},
                        {"gpus_per_node", cluster.gpus_per_node},
                        {"nvlink_gbytes_per_s", cluster.nvlink_gbytes_per_s},
                        {"nic_gbytes_per_s", cluster.nic_gbytes_per_s},
                        {"host_gbytes_per_s", cluster.host_gbytes_per_s},
                        {"reserved_gib", cluster.reserved_gib},
                        {"usable_memory_fraction", cluster.usable_memory_fraction}};
  if (cluster.node_links != NodeLinks{}) {
    out["node"] = to_json(cluster.node_links);
  }
  if (cluster.fabric) {
    out["fabric"] = to_json(*cluster.fabric);
  }
  if (!cluster.measured.empty()) {
    out["measured"] = to_json(cluster.measured);
  }
  if (!cluster.slow_gpus.empty()) {
    out["slow_gpus"] = to_json(cluster.slow_gpus);
  }
  return out;
}

std::vector<std::string> cluster_names() { return shipped_names("clusters"); }

}  // namespace dipsim
