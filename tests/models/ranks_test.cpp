// SPDX-License-Identifier: Apache-2.0
#include "models/ranks.hpp"

#include <doctest/doctest.h>

namespace dipsim {

namespace {

CollectiveGroup group(int tp, int pp, int dp) {
  Cluster cluster;
  cluster.nodes = 8;
  cluster.gpus_per_node = 8;
  return replica_group(cluster, GpuBlock{.tp = tp, .pp = pp, .members = dp});
}

}  // namespace

TEST_CASE("the replicas of a position count with their true number and the nodes they lie on") {
  // tp 2: four groups of GPUs per node. Replicas lie side by side, positions one after the other.
  CHECK(group(2, 1, 4).members == 4);
  CHECK(group(2, 1, 4).nodes == 1);
  // Position 1 starts at the fourth group of node 0 and ends on node 1.
  CHECK(group(2, 2, 3).members == 3);
  CHECK(group(2, 2, 3).nodes == 2);
  CHECK(group(2, 1, 6).members == 6);
  CHECK(group(2, 1, 6).nodes == 2);
  CHECK(group(8, 2, 4).members == 4);
  CHECK(group(8, 2, 4).nodes == 4);
  CHECK(group(4, 4, 1).members == 1);
  CHECK(group(4, 4, 1).nodes == 1);
  // tp 16: a replica takes two nodes, and members stand on every second one.
  CHECK(group(16, 1, 4).nodes == 4);
  CHECK(group(16, 1, 4).members == 4);
}

TEST_CASE("the replicas of a position count with the leaf switches that their nodes hang off") {
  Cluster cluster;
  cluster.nodes = 8;
  cluster.gpus_per_node = 8;
  const auto leaves = [&](int tp, int pp, int dp) {
    return replica_group(cluster, GpuBlock{.tp = tp, .pp = pp, .members = dp}).leaves;
  };
  CHECK(leaves(8, 2, 4) == 1);
  cluster.fabric = Fabric{.kind = FabricKind::FatTree, .nodes_per_leaf = 4};
  CHECK(leaves(8, 2, 4) == 1);
  CHECK(leaves(8, 1, 8) == 2);
  CHECK(leaves(8, 2, 3) == 2);  // position 1 stands on nodes 3 to 5
  cluster.fabric->nodes_per_leaf = 1;
  CHECK(leaves(8, 2, 4) == 4);
}

}  // namespace dipsim
