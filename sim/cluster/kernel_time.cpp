// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/kernel_time.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace dipsim {

namespace {

constexpr double kMicro = 1e-6;

/// Output tiles of the CTA shapes that cuBLAS picks for large bf16 products.
struct Tile {
  std::int64_t m;
  std::int64_t n;
};

constexpr std::array<Tile, 3> kTiles = {{{256, 128}, {128, 256}, {128, 128}}};
constexpr std::array<int, 4> kSplits = {1, 2, 4, 8};

double bandwidth(const Gpu& gpu) {
  return gpu.memory_gbytes_per_s.value * 1e9 * gpu.profile.memory.bandwidth_fraction.value;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Soft maximum: the 4-norm. Math and memory traffic overlap, but not perfectly.
double soft_max(double a, double b) {
  const double a2 = a * a;
  const double b2 = b * b;
  return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

double math_seconds(const Gpu& gpu, const GemmShape& shape, Tile tile, int split) {
  const GemmCurve& curve = gpu.profile.gemm;
  const double sms = gpu.multiprocessors.value;
  const auto tiles = static_cast<double>(shape.batch * split * ceil_div(shape.m, tile.m) *
                                         ceil_div(shape.n, tile.n));
  const double smooth = curve.smooth_waves.value;
  const double waves = smooth * tiles / sms + (1.0 - smooth) * std::ceil(tiles / sms);
  const double depth = static_cast<double>(shape.k) / split + curve.prologue_k.value;
  const double flops_per_wave = 2.0 * static_cast<double>(tile.m * tile.n) * depth * sms;
  return waves * flops_per_wave / (gpu.peak_flops_per_s() * curve.peak_fraction.value);
}

double gemm_bytes(const GemmShape& shape, int split) {
  const auto m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  const double partial_sums = split > 1 ? 8.0 * split : 0.0;
  return static_cast<double>(shape.batch) *
         (2.0 * m * k + 2.0 * k * n + (shape.output_bytes + partial_sums) * m * n);
}

const AttentionCurve& curve_of(const HardwareProfile& profile, const AttentionShape& shape) {
  if (shape.backward) {
    return shape.causal ? profile.attention_backward_causal : profile.attention_backward_full;
  }
  return shape.causal ? profile.attention_forward_causal : profile.attention_forward_full;
}

/// Head dimension that fused kernels are compiled for (FlashAttention-2 and -3 dispatch).
int padded_head_dim(int head_dim) {
  constexpr std::array<int, 5> compiled = {64, 96, 128, 192, 256};
  const auto* const fits = std::ranges::lower_bound(compiled, head_dim);
  return fits == compiled.end() ? head_dim : *fits;
}

/// Relative speed at this head dimension: linear between 64, 128 and 256, constant outside.
double head_factor(const HeadDimensionFactors& factors, int head_dim) {
  const double d = std::clamp(static_cast<double>(head_dim), 64.0, 256.0);
  if (d <= 128.0) {
    return factors.at_64.value + (1.0 - factors.at_64.value) * (d - 64.0) / 64.0;
  }
  return 1.0 + (factors.at_256.value - 1.0) * (d - 128.0) / 128.0;
}

double bus_factor(CollectiveKind kind, int size) {
  const double share = static_cast<double>(size - 1) / static_cast<double>(size);
  return kind == CollectiveKind::AllReduce ? 2.0 * share : share;
}

double curve_seconds(const CollectiveCurve& curve, double steps, double bus_bytes,
                     double link_gbytes_per_s) {
  const double start =
      curve.base_us.value + steps * curve.hop_us.value +
      curve.ramp_us.value * bus_bytes / (bus_bytes + curve.ramp_mbytes.value * 1e6);
  return start * kMicro + bus_bytes / (link_gbytes_per_s * 1e9 * curve.bandwidth_fraction.value);
}

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather:
      return "all-gather";
    case CollectiveKind::ReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::AllReduce:
      return "all-reduce";
  }
  return "";
}

double gemm_seconds(const Gpu& gpu, const GemmShape& shape) {
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0 || shape.batch <= 0) {
    return 0.0;
  }
  double least = std::numeric_limits<double>::max();
  for (const int split : kSplits) {
    const double memory = gemm_bytes(shape, split) / bandwidth(gpu);
    for (const Tile tile : kTiles) {
      least = std::min(least, soft_max(math_seconds(gpu, shape, tile, split), memory));
    }
  }
  return gpu.profile.gemm.start_up_us.value * kMicro + least;
}

double attention_seconds(const Gpu& gpu, const AttentionShape& shape) {
  if (shape.tokens <= 0 || shape.pairs <= 0.0) {
    return 0.0;
  }
  const AttentionCurve& curve = curve_of(gpu.profile, shape);
  const int padded = padded_head_dim(shape.head_dim);
  const double rows = static_cast<double>(shape.tokens) * shape.heads;
  const double flops = shape.flops() * padded / shape.head_dim;
  const double speed = gpu.peak_flops_per_s() * curve.peak_fraction.value *
                       head_factor(gpu.profile.head_dimension, padded);
  return curve.start_up_us.value * kMicro +
         curve.row_ns.value * 1e-9 * rows / gpu.multiprocessors.value + flops / speed;
}

double memory_seconds(const Gpu& gpu, double bytes) {
  return bytes <= 0.0 ? 0.0
                      : gpu.profile.memory.start_up_us.value * kMicro + bytes / bandwidth(gpu);
}

double collective_seconds(const Cluster& cluster, CollectiveKind kind, double bytes,
                          const CollectiveGroup& group) {
  if (group.members <= 1 || bytes <= 0.0) {
    return 0.0;
  }
  const HardwareProfile& profile = cluster.gpu.profile;
  const bool reduce_all = kind == CollectiveKind::AllReduce;
  const double bus_bytes = bus_factor(kind, group.members) * bytes;
  const double directions = reduce_all ? 2.0 : 1.0;
  if (group.nodes == 1) {
    const CollectiveCurve& curve =
        reduce_all ? profile.all_reduce_nvlink : profile.all_gather_nvlink;
    return curve_seconds(curve, directions * (group.members - 1), bus_bytes,
                         cluster.nvlink_gbytes_per_s);
  }
  const auto levels = static_cast<double>(std::bit_width(static_cast<unsigned>(group.nodes - 1)));
  const double link =
      std::min(cluster.nic_gbytes_per_s * group.per_node(), cluster.nvlink_gbytes_per_s);
  return curve_seconds(profile.collective_nic, directions * levels, bus_bytes, link);
}

LinkTime p2p_time(const Cluster& cluster, double bytes, bool same_node) {
  const HardwareProfile& profile = cluster.gpu.profile;
  const LinkCurve& curve = same_node ? profile.p2p_nvlink : profile.p2p_nic;
  const double link = same_node ? cluster.nvlink_gbytes_per_s : cluster.nic_gbytes_per_s;
  return {.occupied = bytes / (link * 1e9 * curve.bandwidth_fraction.value),
          .latency = curve.latency_us.value * kMicro};
}

double host_copy_seconds(const Cluster& cluster, double bytes) {
  const LinkCurve& curve = cluster.gpu.profile.host;
  return curve.latency_us.value * kMicro +
         bytes / (cluster.host_gbytes_per_s * 1e9 * curve.bandwidth_fraction.value);
}

}  // namespace dipsim
