// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/cluster.hpp"

#include "sim/cluster/shipped.hpp"
#include "sim/core/units.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace dipsim {

namespace {

constexpr std::int64_t kMaxNodes = 100'000;
constexpr std::int64_t kMaxGpusPerNode = 1'024;
constexpr double kMinLink = 1e-3;
constexpr double kMaxLink = 1e5;

Gpu gpu_of(const JsonValue& value) {
  return value.is_object() ? read_gpu(value) : load_gpu(value.text());
}

double number_or(JsonObject& object, std::string_view key, double low, double high,
                 double fallback) {
  const auto value = object.find(key);
  return value ? value->number(low, high) : fallback;
}

}  // namespace

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
  cluster.gpus_per_node = static_cast<int>(object.at("gpus_per_node").integer(1, kMaxGpusPerNode));
  cluster.nvlink_gbytes_per_s = number_or(object, "nvlink_gbytes_per_s", kMinLink, kMaxLink,
                                          cluster.gpu.nvlink_gbytes_per_s.value);
  cluster.nic_gbytes_per_s = object.at("nic_gbytes_per_s").number(kMinLink, kMaxLink);
  cluster.host_gbytes_per_s = number_or(object, "host_gbytes_per_s", 0.0, kMaxLink, 0.0);
  cluster.reserved_gib =
      number_or(object, "reserved_gib", 0.0, cluster.gpu.memory_gib.value, cluster.reserved_gib);
  cluster.usable_memory_fraction =
      number_or(object, "usable_memory_fraction", 1e-3, 1.0, cluster.usable_memory_fraction);
  object.finish();
  return cluster;
}

Cluster load_cluster(const std::string& name_or_path) {
  const JsonDocument document =
      JsonDocument::from_file(shipped_file("clusters", "cluster", name_or_path));
  return read_cluster(document.root());
}

nlohmann::json to_json(const Cluster& cluster) {
  return {{"name", cluster.name},
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
}

std::vector<std::string> cluster_names() { return shipped_names("clusters"); }

}  // namespace dipsim
