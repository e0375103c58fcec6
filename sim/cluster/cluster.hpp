// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cluster/fabric.hpp"
#include "sim/cluster/gpu.hpp"
#include "sim/cluster/measured.hpp"
#include "sim/cluster/slow_gpus.hpp"
#include "sim/core/ids.hpp"
#include "sim/core/json.hpp"
#include "sim/core/units.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

/// Nodes of equal GPUs: NVLink inside a node, one network card per GPU between nodes.
struct Cluster {
  std::string name;
  std::string title;
  std::string source;  ///< where its numbers come from
  Gpu gpu;
  int nodes = 1;
  int gpus_per_node = 8;
  NodeLinks node_links;
  double nvlink_gbytes_per_s = 0.0;     ///< per GPU, one way; PCIe where the node has no NVLink
  double nic_gbytes_per_s = 0.0;        ///< per GPU, one way
  std::optional<Fabric> fabric;         ///< nothing: every card reaches every other at full speed
  std::vector<MeasuredTable> measured;  ///< go before the model of collectives and messages
  double host_gbytes_per_s = 0.0;  ///< per GPU to host memory, one way; 0: offload is impossible
  /// Per GPU, held at all times and not modelled one by one: the CUDA context and loaded kernels,
  /// buffers of communication (NCCL), workspaces of libraries (cuBLAS, cuDNN), and an allowance for
  /// fragmentation of the framework's allocator.
  double reserved_gib = 4.0;
  double usable_memory_fraction = 0.95;
  std::vector<SlowGpu> slow_gpus;  ///< in ascending order, at most once each, speeds below 1
  friend bool operator==(const Cluster&, const Cluster&) = default;

  [[nodiscard]] int gpus() const { return nodes * gpus_per_node; }

  [[nodiscard]] int node_of(GpuId gpu_id) const { return gpu_id.value / gpus_per_node; }

  /// Leaf switch that a node hangs off; 0 without a fabric.
  [[nodiscard]] int leaf_of_node(int node) const {
    return fabric ? node / fabric->nodes_per_leaf : 0;
  }

  /// 1 unless it is one of slow_gpus.
  [[nodiscard]] double speed_of(GpuId gpu_id) const;

  /// Bytes of a GPU that a plan may use, the reserve included.
  [[nodiscard]] Bytes memory_limit() const;
  [[nodiscard]] Bytes reserved() const;
};

/// A shipped cluster by name (configs/clusters/NAME.json), or any file by its path. Throws Input.
Cluster load_cluster(const std::string& name_or_path);
/// "gpu" inside is a name, a path or an embedded GPU; the files of "topology" and "measured" lie
/// beside the file that names them.
Cluster read_cluster(const JsonValue& value);
/// With its GPU embedded: reads back without any other file.
nlohmann::json to_json(const Cluster& cluster);

/// Names of the shipped clusters, in alphabetical order.
std::vector<std::string> cluster_names();

}  // namespace dipsim
