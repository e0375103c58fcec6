// SPDX-License-Identifier: Apache-2.0
// Evaluates the curves of a HardwareProfile. All times in seconds, at least the start-up; work of
// size zero takes no time.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/gpu.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace dipsim {

/// `batch` products of [m,k] and [k,n] in bf16, `output_bytes` moved per element of the result
/// (2; 8 where it is added to an fp32 buffer).
struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  int output_bytes = 2;

  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

/// Fused attention over sequences of one kind.
struct AttentionShape {
  std::int64_t tokens = 0;  ///< query tokens of all sequences
  double pairs = 0.0;       ///< query-key pairs that count: Σ s², half of it where causal
  int heads = 0;
  int head_dim = 0;
  bool causal = false;
  bool backward = false;

  /// 4 per pair, head and dimension; the backward pass counts 2.5 times as much (FlashAttention-2,
  /// arXiv 2307.08691 §4).
  [[nodiscard]] double flops() const {
    return (backward ? 10.0 : 4.0) * pairs * static_cast<double>(heads) *
           static_cast<double>(head_dim);
  }
};

enum class CollectiveKind : std::uint8_t { AllGather, ReduceScatter, AllReduce };

std::string_view name_of(CollectiveKind kind);

/// Who takes part in a collective: `nodes` nodes with `per_node` GPUs each.
struct CollectiveGroup {
  int members = 1;
  int nodes = 1;  ///< that the members lie on

  /// On the node with the fewest: its network cards are the bottleneck.
  [[nodiscard]] int per_node() const { return std::max(1, members / nodes); }
};

double gemm_seconds(const Gpu& gpu, const GemmShape& shape);
double attention_seconds(const Gpu& gpu, const AttentionShape& shape);
double memory_seconds(const Gpu& gpu, double bytes);

/// `bytes`: the whole, gathered tensor. Between nodes every member drives its own network card, up
/// to the speed of NVLink. A group of one takes no time.
double collective_seconds(const Cluster& cluster, CollectiveKind kind, double bytes,
                          const CollectiveGroup& group);

/// Time for which a message of `bytes` occupies the link, and its latency, both in seconds.
struct LinkTime {
  double occupied = 0.0;
  double latency = 0.0;
};

LinkTime p2p_time(const Cluster& cluster, double bytes, bool same_node);

/// One copy between a GPU and host memory; only where Cluster::host_gbytes_per_s is not 0.
double host_copy_seconds(const Cluster& cluster, double bytes);

}  // namespace dipsim
