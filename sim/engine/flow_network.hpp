// SPDX-License-Identifier: Apache-2.0
// The links of a cluster as the tasks of a graph share them.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/core/rows.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <vector>

namespace dipsim {

/// A route as it loads one resource: how many of the flow's streams pass through it.
struct LinkUse {
  std::int32_t resource = 0;
  std::int32_t streams = 0;  ///< in units of 1 / kStreamUnit
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

inline constexpr std::int32_t kStreamUnit = 1 << 16;

/// Resources are directions of links, with a capacity each. A transfer, a collective or a copy is
/// one flow of equal streams, one per GPU of its rank; all of them move at the speed of the flow.
/// Tasks of equal way share a route. Plain arrays: the engine reads them while it runs.
struct FlowNetwork {
  std::vector<std::int64_t> capacity;  ///< per resource, in bytes per second
  Rows<LinkUse> routes;                ///< of each resource at most one use
  std::vector<std::int32_t> route;     ///< per task; negative: no flow
  std::vector<std::int64_t> speed;     ///< per task: bytes per second of a stream that is alone
  /// A pass takes this much longer, as a share of its time, while a transfer or collective of its
  /// rank is under way (OverlapCost of the GPU's profile).
  double compute_slowdown = 0.0;

  /// What one flow takes of a resource while its streams move at `bytes_per_s`.
  static std::int64_t load(const LinkUse& use, double bytes_per_s);
};

/// The flows of a graph on the links of the cluster (docs/model.md, "contention"). Passes,
/// optimizer steps, and transfers between ranks that share their first GPU are no flows. A
/// collective of one rank, whose other members are replicas that nobody simulates, loads no link.
/// One GPU stands for all GPUs of a rank, whose streams count together on what they share. Linear
/// in tasks, ranks and members of groups: routes are searched in the topology of a few nodes, once
/// per structure. Throws Input where a cell has no GPU or one that the cluster lacks.
FlowNetwork build_flow_network(const Cluster& cluster, const TaskGraph& graph);

}  // namespace dipsim
