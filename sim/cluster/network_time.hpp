// SPDX-License-Identifier: Apache-2.0
// Messages and collectives on the links of a cluster. All times in seconds; a collective of no
// bytes or of one GPU takes no time, a message of no bytes its latency.
//
// A collective takes what the fastest algorithm and protocol takes that NCCL would consider. Each
// is a start-up that grows with the hops of the algorithm, and a bandwidth; docs/model.md,
// "collectives", has the formulas. Sources: NCCL src/graph/tuning.cc (forms, latencies), nccl-tests
// doc/PERFORMANCE.md (bus factors).
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/collective.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace dipsim {

/// Where two GPUs stand to each other.
struct PeerPath {
  bool same_node = true;
  bool same_leaf = true;  ///< their cards hang off one leaf switch; asked between nodes only
  int communicator = 2;   ///< ranks of the communicator that carries the message
};

enum class CollectiveAlgorithm : std::uint8_t { Ring, Tree, Nvls, NvlsTree, Direct };

enum class Protocol : std::uint8_t { LL, LL128, Simple };

std::string_view name_of(CollectiveAlgorithm algorithm);
std::string_view name_of(Protocol protocol);

/// One way to run a collective.
struct CollectiveOption {
  CollectiveAlgorithm algorithm;
  Protocol protocol;
  double seconds = 0.0;
};

/// Every way that NCCL would consider, in a fixed order; empty for a group of one or no bytes.
/// Rings serve every kind, trees and NVLS only all-reduce, all-to-all sends directly. Where NVLS
/// trees can run, all-reduce between nodes runs no rings: the tuner rates them at 5/6 of the links
/// and rings at n/(2(n-1)).
std::vector<CollectiveOption> collective_options(const Cluster& cluster, CollectiveKind kind,
                                                 double bytes, const CollectiveGroup& group);

/// `bytes`: the whole, gathered tensor (per GPU, what it sends to all in all-to-all). A
/// measured table of the cluster for this kind and group goes before the fastest option.
double collective_seconds(const Cluster& cluster, CollectiveKind kind, double bytes,
                          const CollectiveGroup& group);

/// Bytes through the busiest link of a GPU, over `bytes`: the bus factor of nccl-tests.
double bus_factor(CollectiveKind kind, int members);

/// Time for which a message of `bytes` occupies the link, and its latency, both in seconds.
struct LinkTime {
  double occupied = 0.0;
  double latency = 0.0;
};

/// A measured table goes before the model: what its smallest message takes is latency then.
LinkTime p2p_time(const Cluster& cluster, double bytes, const PeerPath& path);

/// One copy between a GPU and host memory; only where Cluster::host_gbytes_per_s is not 0.
double host_copy_seconds(const Cluster& cluster, double bytes);

}  // namespace dipsim
