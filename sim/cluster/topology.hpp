// SPDX-License-Identifier: Apache-2.0
// The devices of a cluster and the links between them: which way a message takes, and what it
// shares with others.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/core/ids.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace dipsim {

enum class DeviceKind : std::uint8_t { Gpu, NvSwitch, PcieSwitch, Host, Nic, Leaf, Spine };

std::string_view name_of(DeviceKind kind);

struct Device {
  DeviceKind kind = DeviceKind::Gpu;
  int node = -1;  ///< -1: a switch of the fabric
  int index = 0;  ///< among those of its kind in the node, or in the fabric
  friend bool operator==(const Device&, const Device&) = default;
};

/// Both ways at once, each at this speed.
struct Link {
  int a = 0;  ///< devices, by their row
  int b = 0;
  double gbytes_per_s = 0.0;  ///< one way, all that the link carries
  /// What one GPU gets of it while everybody below sends through it: less than gbytes_per_s where
  /// the link stands for a bundle (the uplinks of a leaf).
  double share_gbytes_per_s = 0.0;
  friend bool operator==(const Link&, const Link&) = default;
};

/// An undirected graph of devices. GPUs are numbered in the order in which they were added.
/// Routes are computed when asked for, one search per question: no table of all pairs.
class Topology {
 public:
  Topology();
  ~Topology();
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  /// Returns the row of the new device.
  int add(Device device);
  /// Throws Internal when a device is not there or the speed is not positive. share 0: the speed.
  void connect(int a, int b, double gbytes_per_s, double share_gbytes_per_s = 0.0);

  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }

  [[nodiscard]] const std::vector<Link>& links() const { return links_; }

  [[nodiscard]] int gpus() const { return static_cast<int>(gpus_.size()); }

  /// Row of a GPU's device.
  [[nodiscard]] int device_of(GpuId gpu) const;

  /// Links from one GPU to another, in order: the way with the least Σ 1/speed (1/share between
  /// switches of the fabric), so fast links before slow ones and few before many; between equals
  /// the one that was connected first. Empty from a GPU to itself. Throws Input when no way leads
  /// there. Other GPUs may pass messages on, as NCCL does between rails.
  [[nodiscard]] std::vector<int> route(GpuId from, GpuId to) const;

  /// Least share along the route; infinity from a GPU to itself.
  [[nodiscard]] double bottleneck_gbytes_per_s(GpuId from, GpuId to) const;

 private:
  struct Graph;

  std::vector<Device> devices_;
  std::vector<Link> links_;
  std::vector<int> gpus_;
  std::unique_ptr<Graph> graph_;
};

/// One node inside a topology: its GPUs around a switch, and one card per GPU beside it. Returns
/// the rows of the cards.
std::vector<int> add_nvswitch_node(Topology& topology, int node, int gpus,
                                   double nvlink_gbytes_per_s, double nic_gbytes_per_s,
                                   double pcie_gbytes_per_s);

/// One node without NVLink: `gpus_per_switch` GPUs and their cards below each PCIe switch, the
/// switches below the host. Returns the rows of the cards.
std::vector<int> add_pcie_node(Topology& topology, int node, int gpus, int gpus_per_switch,
                               double pcie_gbytes_per_s, double nic_gbytes_per_s);

/// All GPUs of a cluster, its nodes as Cluster::node_links says; leaves and one spine as its fabric
/// says (one leaf for all without a fabric). The spine stands for a layer of switches that spread
/// the traffic evenly.
Topology build_topology(const Cluster& cluster);

}  // namespace dipsim
