// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/topology.hpp"

#include "sim/cluster/network_time.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

/// NVLink 400 GB/s, cards 50 GB/s, PCIe 64 GB/s.
Cluster cluster_of(int nodes, int gpus_per_node) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus_per_node;
  cluster.nvlink_gbytes_per_s = 400.0;
  cluster.nic_gbytes_per_s = 50.0;
  cluster.gpu.pcie_gbytes_per_s.value = 64.0;
  return cluster;
}

GpuId gpu(int number) { return GpuId(number); }

/// The devices that a route passes, both ends included.
std::string way(const Topology& topology, GpuId from, GpuId to) {
  int at = topology.device_of(from);
  std::string kinds(name_of(topology.devices()[static_cast<std::size_t>(at)].kind));
  for (const int row : topology.route(from, to)) {
    const Link& link = topology.links()[static_cast<std::size_t>(row)];
    REQUIRE((link.a == at || link.b == at));
    at = link.a == at ? link.b : link.a;
    kinds += " - ";
    kinds += name_of(topology.devices()[static_cast<std::size_t>(at)].kind);
  }
  CHECK(at == topology.device_of(to));
  return kinds;
}

}  // namespace

TEST_CASE("GPUs of a node meet at the NVSwitch") {
  const Topology topology = build_topology(cluster_of(1, 8));
  CHECK(topology.gpus() == 8);
  CHECK(way(topology, gpu(0), gpu(7)) == "GPU - NVSwitch - GPU");
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(7)) == 400.0);
  CHECK(topology.route(gpu(3), gpu(3)).empty());
  CHECK(topology.bottleneck_gbytes_per_s(gpu(3), gpu(3)) ==
        std::numeric_limits<double>::infinity());
}

TEST_CASE("GPUs without NVLink meet at their PCIe switch, or at the host") {
  Cluster cluster = cluster_of(1, 8);
  cluster.node_links = {.kind = NodeKind::Pcie, .gpus_per_switch = 4};
  cluster.nvlink_gbytes_per_s = 64.0;
  const Topology topology = build_topology(cluster);
  CHECK(way(topology, gpu(0), gpu(3)) == "GPU - PCIe switch - GPU");
  CHECK(way(topology, gpu(0), gpu(4)) == "GPU - PCIe switch - host - PCIe switch - GPU");
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(3)) == 64.0);
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(4)) == 16.0);
}

TEST_CASE("without a fabric every card reaches every other through one switch") {
  const Topology topology = build_topology(cluster_of(3, 2));
  CHECK(way(topology, gpu(0), gpu(5)) ==
        "GPU - PCIe switch - card - leaf - card - PCIe switch - GPU");
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(5)) == 50.0);
}

TEST_CASE("a fat tree joins leaves at the spine, where oversubscription bites") {
  Cluster cluster = cluster_of(4, 2);
  cluster.fabric =
      Fabric{.kind = FabricKind::FatTree, .nodes_per_leaf = 2, .oversubscription = 4.0};
  const Topology topology = build_topology(cluster);
  CHECK(way(topology, gpu(0), gpu(2)) ==
        "GPU - PCIe switch - card - leaf - card - PCIe switch - GPU");
  CHECK(way(topology, gpu(0), gpu(4)) ==
        "GPU - PCIe switch - card - leaf - spine - leaf - card - PCIe switch - GPU");
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(2)) == 50.0);
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(4)) == 12.5);
  // All uplinks of a leaf together: 4 cards of 50 GB/s, a quarter of it.
  const auto& links = topology.links();
  const auto uplink = std::ranges::find_if(links, [&](const Link& link) {
    return topology.devices()[static_cast<std::size_t>(link.b)].kind == DeviceKind::Spine;
  });
  REQUIRE(uplink != links.end());
  CHECK(uplink->gbytes_per_s == 50.0);
}

TEST_CASE("on rails equal positions meet at their leaf, others pass through a GPU beside") {
  Cluster cluster = cluster_of(4, 2);
  cluster.fabric =
      Fabric{.kind = FabricKind::RailOptimised, .nodes_per_leaf = 4, .oversubscription = 4.0};
  const Topology topology = build_topology(cluster);
  CHECK(way(topology, gpu(0), gpu(6)) ==
        "GPU - PCIe switch - card - leaf - card - PCIe switch - GPU");
  CHECK(way(topology, gpu(0), gpu(7)) ==
        "GPU - NVSwitch - GPU - PCIe switch - card - leaf - card - PCIe switch - GPU");
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(7)) == 50.0);
  const auto leaves = std::ranges::count(topology.devices(), DeviceKind::Leaf, &Device::kind);
  CHECK(leaves == 2);
}

TEST_CASE("messages of one node to another share no link on rails, and messages to one GPU do") {
  Cluster cluster = cluster_of(2, 4);
  cluster.fabric = Fabric{.kind = FabricKind::RailOptimised, .nodes_per_leaf = 2};
  const Topology topology = build_topology(cluster);
  const auto shared = [&](GpuId a, GpuId b, GpuId c, GpuId d) {
    const std::vector<int> first = topology.route(a, b);
    return std::ranges::any_of(topology.route(c, d), [&](int link) {
      return std::ranges::find(first, link) != first.end();
    });
  };
  CHECK_FALSE(shared(gpu(0), gpu(4), gpu(1), gpu(5)));
  CHECK(shared(gpu(0), gpu(4), gpu(1), gpu(4)));
}

TEST_CASE("what the routes say is what the times of messages take") {
  Cluster cluster = load_cluster("h100-64");
  cluster.gpu.profile.p2p_channels.gbytes_per_s.value = 1e4;
  for (const FabricKind kind : {FabricKind::FatTree, FabricKind::RailOptimised}) {
    cluster.fabric = Fabric{.kind = kind, .nodes_per_leaf = 4, .oversubscription = 2.0};
    const Topology topology = build_topology(cluster);
    const double fraction = cluster.gpu.profile.p2p_nic.bandwidth_fraction.value;
    for (const int node : {1, 3, 4, 7}) {
      const bool same_leaf = cluster.leaf_of_node(node) == 0;
      const double seconds =
          p2p_time(cluster, 1e9, {.same_node = false, .same_leaf = same_leaf}).occupied;
      CHECK(1.0 / seconds ==
            doctest::Approx(fraction * topology.bottleneck_gbytes_per_s(gpu(0), gpu(8 * node))));
    }
  }
}

TEST_CASE("no way between two GPUs and a GPU that is not there are errors") {
  Topology topology;
  topology.add({.kind = DeviceKind::Gpu});
  topology.add({.kind = DeviceKind::Gpu});
  const Error apart = test::error_of([&] { (void)topology.route(gpu(0), gpu(1)); });
  CHECK(apart.kind() == ErrorKind::Input);
  CHECK(std::string(apart.what()).find("no link leads there from GPU 0") != std::string::npos);
  const Error missing = test::error_of([&] { (void)topology.route(gpu(0), gpu(2)); });
  CHECK(std::string(missing.what()).find("GPU 2") != std::string::npos);
}

TEST_CASE("16384 GPUs are built and routed without a table of pairs") {
  Cluster cluster = cluster_of(2048, 8);
  cluster.fabric =
      Fabric{.kind = FabricKind::RailOptimised, .nodes_per_leaf = 32, .oversubscription = 2.0};
  const auto start = std::chrono::steady_clock::now();
  const Topology topology = build_topology(cluster);
  const auto built = std::chrono::steady_clock::now();
  CHECK(topology.gpus() == 16'384);
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(16'383)) == 25.0);
  CHECK(topology.bottleneck_gbytes_per_s(gpu(0), gpu(255)) == 50.0);
  const auto routed = std::chrono::steady_clock::now();
  const auto ms = [](auto from, auto to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
  };
  MESSAGE("built in " << ms(start, built) << " ms, two routes in " << ms(built, routed) << " ms");
  // Three devices per GPU and one switch per node, a leaf per rail of 32 nodes, one spine.
  CHECK(topology.devices().size() == 3 * 16'384 + 2'048 + 64 * 8 + 1);
}
