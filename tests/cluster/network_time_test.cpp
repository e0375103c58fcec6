// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/network_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

constexpr std::array kKinds = {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                               CollectiveKind::AllReduce, CollectiveKind::Broadcast,
                               CollectiveKind::AllToAll};

Parameter value(double v) { return {v, Evidence::Prior, ""}; }

ProtocolCurve protocol(double base_us, double nvlink_hop_us, double nic_hop_us, double fraction) {
  return {.base_us = value(base_us),
          .nvlink_hop_us = value(nvlink_hop_us),
          .nic_hop_us = value(nic_hop_us),
          .nvlink_fraction = value(fraction),
          .nic_fraction = value(fraction)};
}

/// NVLink 100 GB/s, cards 10 GB/s, Simple at half of each; LL is never the fastest from 1 MB on.
Cluster plain_cluster() {
  Cluster cluster;
  cluster.nodes = 64;
  cluster.nvlink_gbytes_per_s = 100.0;
  cluster.nic_gbytes_per_s = 10.0;
  HardwareProfile& profile = cluster.gpu.profile;
  profile.ring_ll = protocol(1.0, 0.5, 2.0, 0.001);
  profile.ring_ll128 = protocol(1e4, 0.0, 0.0, 0.001);
  profile.ring_simple = protocol(5.0, 2.0, 20.0, 0.5);
  profile.tree_ll = protocol(1e4, 0.0, 0.0, 0.001);
  profile.tree_ll128 = protocol(1e4, 0.0, 0.0, 0.001);
  profile.tree_simple = protocol(7.0, 3.0, 30.0, 0.25);
  profile.all_to_all = {.base_us = value(4.0),
                        .nvlink_peer_us = value(1.0),
                        .nic_peer_us = value(5.0),
                        .nvlink_fraction = value(0.5)};
  profile.p2p_nvlink = {.latency_us = value(10.0), .bandwidth_fraction = value(0.5)};
  profile.p2p_nic = {.latency_us = value(20.0), .bandwidth_fraction = value(1.0)};
  profile.p2p_channels = {
      .per_peer = value(4.0), .total = value(128.0), .gbytes_per_s = value(1e3)};
  return cluster;
}

/// The same with switches that add up.
Cluster nvls_cluster() {
  Cluster cluster = plain_cluster();
  cluster.gpu.profile.nvls = NvlsCurve{.base_us = value(20.0),
                                       .nvlink_fraction = value(0.5),
                                       .ramp_us = value(100.0),
                                       .ramp_mbytes = value(700.0)};
  cluster.gpu.profile.nvls_tree = NvlsTreeCurve{.base_us = value(50.0),
                                                .nic_hop_us = value(10.0),
                                                .two_nodes_nic_fraction = value(0.8),
                                                .nic_fraction = value(0.4)};
  return cluster;
}

double seconds_of(const Cluster& cluster, CollectiveKind kind, double bytes,
                  const CollectiveGroup& group, CollectiveAlgorithm algorithm, Protocol protocol) {
  for (const CollectiveOption& option : collective_options(cluster, kind, bytes, group)) {
    if (option.algorithm == algorithm && option.protocol == protocol) {
      return option.seconds;
    }
  }
  return -1.0;
}

bool offers(const Cluster& cluster, CollectiveKind kind, const CollectiveGroup& group,
            CollectiveAlgorithm algorithm) {
  const auto options = collective_options(cluster, kind, 1e6, group);
  return std::ranges::any_of(options, [&](const auto& o) { return o.algorithm == algorithm; });
}

}  // namespace

TEST_CASE("a ring all-gather moves (n-1)/n of its bytes in n-1 hops, an all-reduce twice that") {
  const Cluster cluster = plain_cluster();
  const CollectiveGroup group{.members = 8, .nodes = 1};
  const double gather = collective_seconds(cluster, CollectiveKind::AllGather, 8e8, group);
  CHECK(gather == doctest::Approx(5e-6 + 7 * 2e-6 + 7e8 / 50e9));
  CHECK(collective_seconds(cluster, CollectiveKind::ReduceScatter, 8e8, group) == gather);
  CHECK(collective_seconds(cluster, CollectiveKind::AllReduce, 8e8, group) ==
        doctest::Approx(5e-6 + 14 * 2e-6 + 14e8 / 50e9));
  CHECK(collective_seconds(cluster, CollectiveKind::Broadcast, 8e8, group) ==
        doctest::Approx(5e-6 + 7 * 2e-6 + 8e8 / 50e9));
}

TEST_CASE("a ring over nodes crosses the network once per node but one") {
  const Cluster cluster = plain_cluster();
  const double seconds =
      collective_seconds(cluster, CollectiveKind::AllGather, 8e8, {.members = 32, .nodes = 4});
  CHECK(seconds == doctest::Approx(5e-6 + 28 * 2e-6 + 3 * 20e-6 + 8e8 * 31 / 32 / 40e9));
}

TEST_CASE("between nodes every member of the group drives its own card, up to NVLink") {
  const Cluster cluster = plain_cluster();
  const auto seconds = [&](int per_node) {
    return seconds_of(cluster, CollectiveKind::AllGather, 8e8,
                      {.members = 4 * per_node, .nodes = 4}, CollectiveAlgorithm::Ring,
                      Protocol::Simple);
  };
  const double latency = 5e-6 + 3 * 20e-6;
  CHECK(seconds(1) == doctest::Approx(latency + 6e8 / 5e9));
  CHECK(seconds(2) == doctest::Approx(latency + 4 * 2e-6 + 7e8 / 10e9));
  CHECK(seconds(32) == doctest::Approx(latency + 124 * 2e-6 + 8e8 * 127 / 128 / 50e9));
}

TEST_CASE("the protocol that starts fastest carries short messages, the widest long ones") {
  const Cluster cluster = plain_cluster();
  const CollectiveGroup group{.members = 8, .nodes = 1};
  CHECK(collective_seconds(cluster, CollectiveKind::AllGather, 8, group) ==
        doctest::Approx(1e-6 + 7 * 0.5e-6).epsilon(1e-2));
  const double crossing = 1e6;
  CHECK(collective_seconds(cluster, CollectiveKind::AllGather, crossing, group) ==
        seconds_of(cluster, CollectiveKind::AllGather, crossing, group, CollectiveAlgorithm::Ring,
                   Protocol::Simple));
}

TEST_CASE("trees serve all-reduce between nodes, their hops grow with the logarithm of the nodes") {
  const Cluster cluster = plain_cluster();
  const auto tree = [&](int nodes) {
    return seconds_of(cluster, CollectiveKind::AllReduce, 1e6,
                      {.members = 8 * nodes, .nodes = nodes}, CollectiveAlgorithm::Tree,
                      Protocol::Simple);
  };
  const double fixed = 7e-6 + 14 * 3e-6 + 2e6 / 20e9;
  CHECK(tree(2) == doctest::Approx(fixed + 2 * 30e-6));
  CHECK(tree(4) == doctest::Approx(fixed + 4 * 30e-6));
  CHECK(tree(5) == doctest::Approx(fixed + 6 * 30e-6));
  CHECK(tree(64) == doctest::Approx(fixed + 12 * 30e-6));
  const CollectiveGroup one_node{.members = 8, .nodes = 1};
  const CollectiveGroup two_nodes{.members = 16, .nodes = 2};
  CHECK_FALSE(offers(cluster, CollectiveKind::AllReduce, one_node, CollectiveAlgorithm::Tree));
  CHECK_FALSE(offers(cluster, CollectiveKind::AllGather, two_nodes, CollectiveAlgorithm::Tree));
}

TEST_CASE("a small all-reduce over many nodes takes a tree, a large one a ring") {
  const Cluster cluster = plain_cluster();
  const CollectiveGroup group{.members = 512, .nodes = 64};
  CHECK(collective_seconds(cluster, CollectiveKind::AllReduce, 1e5, group) ==
        seconds_of(cluster, CollectiveKind::AllReduce, 1e5, group, CollectiveAlgorithm::Tree,
                   Protocol::Simple));
  CHECK(collective_seconds(cluster, CollectiveKind::AllReduce, 1e10, group) ==
        seconds_of(cluster, CollectiveKind::AllReduce, 1e10, group, CollectiveAlgorithm::Ring,
                   Protocol::Simple));
}

TEST_CASE("a protocol without a speed between nodes stays inside them") {
  Cluster cluster = plain_cluster();
  cluster.gpu.profile.ring_ll.nic_fraction.value = 0.0;
  const auto ll = [&](int nodes) {
    return seconds_of(cluster, CollectiveKind::AllGather, 8.0, {.members = 8, .nodes = nodes},
                      CollectiveAlgorithm::Ring, Protocol::LL);
  };
  CHECK(ll(1) > 0.0);
  CHECK(ll(2) == -1.0);
}

TEST_CASE("switches that add up move 1 + 1/n of the bytes over each link") {
  const Cluster cluster = nvls_cluster();
  const double bus = 14e8 / 1e6;
  CHECK(seconds_of(cluster, CollectiveKind::AllReduce, 8e8, {.members = 8, .nodes = 1},
                   CollectiveAlgorithm::Nvls, Protocol::Simple) ==
        doctest::Approx(20e-6 + 100e-6 * bus / (bus + 700.0) + 9e8 / 50e9));
  CHECK_FALSE(offers(cluster, CollectiveKind::AllGather, {.members = 8, .nodes = 1},
                     CollectiveAlgorithm::Nvls));
}

TEST_CASE("trees of switches take the slower of node and network, and leave rings aside") {
  const Cluster cluster = nvls_cluster();
  const auto tree = [&](int nodes, int per_node) {
    return seconds_of(cluster, CollectiveKind::AllReduce, 8e8,
                      {.members = nodes * per_node, .nodes = nodes}, CollectiveAlgorithm::NvlsTree,
                      Protocol::Simple);
  };
  CHECK(tree(2, 4) == doctest::Approx(50e-6 + 2 * 10e-6 + 8e8 / 32e9));  // cards: 4 × 10 × 0.8
  CHECK(tree(2, 8) == doctest::Approx(50e-6 + 2 * 10e-6 + 9e8 / 50e9));  // NVLink
  CHECK(tree(4, 8) == doctest::Approx(50e-6 + 4 * 10e-6 + 1.5 * 8e8 / 32e9));
  CHECK_FALSE(offers(cluster, CollectiveKind::AllReduce, {.members = 16, .nodes = 2},
                     CollectiveAlgorithm::Ring));
  // One GPU per node: no switch has anything to add.
  CHECK(offers(cluster, CollectiveKind::AllReduce, {.members = 2, .nodes = 2},
               CollectiveAlgorithm::Ring));
  CHECK_FALSE(offers(cluster, CollectiveKind::AllReduce, {.members = 2, .nodes = 2},
                     CollectiveAlgorithm::NvlsTree));
}

TEST_CASE("all-to-all sends to every peer, the far share through the GPU's own card") {
  const Cluster cluster = plain_cluster();
  CHECK(collective_seconds(cluster, CollectiveKind::AllToAll, 8e8, {.members = 8, .nodes = 1}) ==
        doctest::Approx(4e-6 + 7e-6 + 7e8 / 50e9));
  CHECK(collective_seconds(cluster, CollectiveKind::AllToAll, 8e8, {.members = 16, .nodes = 2}) ==
        doctest::Approx(4e-6 + 7e-6 + 40e-6 + 4e8 / 10e9));
}

TEST_CASE("a fabric without oversubscription changes nothing") {
  Cluster cluster = nvls_cluster();
  const CollectiveGroup group{.members = 64, .nodes = 8, .leaves = 4};
  std::vector<double> without;
  for (const CollectiveKind kind : kKinds) {
    without.push_back(collective_seconds(cluster, kind, 1e9, group));
  }
  cluster.fabric = Fabric{.kind = FabricKind::FatTree, .nodes_per_leaf = 2};
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    CHECK(collective_seconds(cluster, kKinds[i], 1e9, group) == without[i]);
  }
}

TEST_CASE("an oversubscribed fabric slows what crosses its leaves, and only that") {
  Cluster cluster = plain_cluster();
  cluster.fabric =
      Fabric{.kind = FabricKind::FatTree, .nodes_per_leaf = 4, .oversubscription = 8.0};
  const auto gather = [&](int nodes, int leaves) {
    return seconds_of(cluster, CollectiveKind::AllGather, 8e9,
                      {.members = 8 * nodes, .nodes = nodes, .leaves = leaves},
                      CollectiveAlgorithm::Ring, Protocol::Simple);
  };
  const double hops = 5e-6 + 28 * 2e-6 + 3 * 20e-6;
  CHECK(gather(4, 1) == doctest::Approx(hops + 8e9 * 31 / 32 / 40e9));
  // Two nodes of the group below each leaf share its uplinks: 2/8 of the cards' speed.
  CHECK(gather(4, 2) == doctest::Approx(hops + 8e9 * 31 / 32 / 10e9));
  CHECK(gather(4, 4) == doctest::Approx(hops + 8e9 * 31 / 32 / 5e9));

  const auto message = [&](bool same_leaf) {
    return p2p_time(cluster, 1e9, {.same_node = false, .same_leaf = same_leaf}).occupied;
  };
  CHECK(message(true) == doctest::Approx(1e9 / 10e9));
  CHECK(message(false) == doctest::Approx(8.0 * 1e9 / 10e9));
}

TEST_CASE("a message takes NVLink inside a node and the network between nodes") {
  const Cluster cluster = plain_cluster();
  const LinkTime inside = p2p_time(cluster, 1e9, {.same_node = true});
  CHECK(inside.occupied == doctest::Approx(1e9 / 50e9));
  CHECK(inside.latency == doctest::Approx(10e-6));
  const LinkTime outside = p2p_time(cluster, 1e9, {.same_node = false});
  CHECK(outside.occupied == doctest::Approx(1e9 / 10e9));
  CHECK(outside.latency == doctest::Approx(20e-6));
}

TEST_CASE("channels per peer halve as the communicator grows, as B200 shows at 8 and 16 nodes") {
  // sendrecv_perf on B200 with 400 Gb/s cards: 44, 26 and 14.6 GB/s on 4, 8 and 16 nodes of 8, and
  // no less on 32; one channel carries 14.5.
  Cluster cluster = plain_cluster();
  cluster.nic_gbytes_per_s = 50.0;
  cluster.gpu.profile.p2p_nic.bandwidth_fraction.value = 0.88;
  cluster.gpu.profile.p2p_channels.gbytes_per_s.value = 14.5;
  const auto speed = [&](int ranks) {
    return 1.0 / p2p_time(cluster, 1e9, {.same_node = false, .communicator = ranks}).occupied;
  };
  CHECK(speed(16) == doctest::Approx(44.0));
  CHECK(speed(32) == doctest::Approx(44.0));
  CHECK(speed(64) == doctest::Approx(26.0).epsilon(0.12));
  CHECK(speed(128) == doctest::Approx(14.6).epsilon(0.02));
  CHECK(speed(256) == doctest::Approx(14.6).epsilon(0.02));
}

TEST_CASE("H100 sends at 42 GB/s on up to four nodes and at 21 on more") {
  const Cluster cluster = load_cluster("h100-64");
  const auto speed = [&](int nodes) {
    return 1.0 / p2p_time(cluster, 1e9, {.same_node = false, .communicator = 8 * nodes}).occupied;
  };
  CHECK(speed(2) == doctest::Approx(42.0));
  CHECK(speed(4) == doctest::Approx(42.0));
  CHECK(speed(5) == doctest::Approx(21.0));
  CHECK(speed(16) == doctest::Approx(21.0));
}

TEST_CASE("all-to-all on H100 has the bus bandwidth that is published for 8, 16 and 128 GPUs") {
  const Cluster cluster = load_cluster("h100-64");
  const auto bus_bandwidth = [&](int nodes) {
    const CollectiveGroup group{.members = 8 * nodes, .nodes = nodes};
    return bus_factor(CollectiveKind::AllToAll, group.members) * 1e10 /
           collective_seconds(cluster, CollectiveKind::AllToAll, 1e10, group) / 1e9;
  };
  CHECK(bus_bandwidth(1) == doctest::Approx(340.0).epsilon(0.02));
  CHECK(bus_bandwidth(2) == doctest::Approx(81.0).epsilon(0.05));
  CHECK(bus_bandwidth(16) == doctest::Approx(45.0).epsilon(0.05));
}

TEST_CASE("a group of one and a collective of no bytes take no time") {
  const Cluster cluster = load_cluster("h800-64");
  for (const CollectiveKind kind : kKinds) {
    CHECK(collective_seconds(cluster, kind, 1e9, {.members = 1, .nodes = 1}) == 0.0);
    CHECK(collective_seconds(cluster, kind, 0.0, {.members = 8, .nodes = 1}) == 0.0);
  }
}

TEST_CASE("more bytes never take less time on a shipped cluster, nor do they beat the links") {
  constexpr std::array groups = {CollectiveGroup{.members = 8, .nodes = 1},
                                 CollectiveGroup{.members = 4, .nodes = 4},
                                 CollectiveGroup{.members = 16, .nodes = 2}};
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    for (const CollectiveKind kind : kKinds) {
      for (const CollectiveGroup& group : groups) {
        double before = 0.0;
        for (double bytes = 64.0; bytes < 1e11; bytes *= 1.3) {
          const double seconds = collective_seconds(cluster, kind, bytes, group);
          REQUIRE(seconds >= before);
          before = seconds;
        }
        const double links =
            group.members == group.nodes ? cluster.nic_gbytes_per_s : cluster.nvlink_gbytes_per_s;
        // Switches that add up move (1 + 1/n) bytes, and a ring's bus traffic is more than that.
        const double traffic = std::min(bus_factor(kind, group.members), 1.0 + 1.0 / 8.0);
        CHECK(before * links * 1e9 >= traffic * 1e11 / 1.3 * 0.999);
      }
    }
  }
}
