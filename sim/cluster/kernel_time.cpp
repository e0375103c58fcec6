// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/kernel_time.hpp"

#include "sim/cluster/kernel_math.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace dipsim {

namespace {

/// Output tiles of the CTA shapes that cuBLAS picks for large products, and one for few rows.
struct Tile {
  std::int64_t m;
  std::int64_t n;
};

constexpr std::array<Tile, 4> kTiles = {{{256, 128}, {128, 256}, {128, 128}, {64, 256}}};
constexpr std::array<int, 4> kSplits = {1, 2, 4, 8};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const GemmCurve& gemm_curve(const Gpu& gpu, DataType type) {
  if (gpu.peak_flops_per_s(type) > 0.0) {
    if (bytes_of(type) > 1) {
      return gpu.profile.gemm;
    }
    if (gpu.profile.gemm_fp8) {
      return *gpu.profile.gemm_fp8;
    }
  }
  fail_without_type(gpu, "matrix products", type);
}

/// `batch` groups of rows: one of each length in `rows`.
struct Products {
  const GemmShape& shape;
  std::span<const std::int64_t> rows;
  std::int64_t batch;

  [[nodiscard]] std::int64_t tiles(Tile tile) const {
    std::int64_t in_m = 0;
    for (const std::int64_t m : rows) {
      in_m += ceil_div(m, tile.m);
    }
    return batch * in_m * ceil_div(shape.n, tile.n);
  }

  [[nodiscard]] double bytes(int split) const {
    double m = 0.0;
    double groups = 0.0;
    for (const std::int64_t in_group : rows) {
      m += static_cast<double>(in_group);
      groups += in_group > 0 ? 1.0 : 0.0;
    }
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    const double in = bytes_of(shape.type);
    const double partial_sums = split > 1 ? 8.0 * split : 0.0;
    return static_cast<double>(batch) *
           (in * m * k + in * groups * k * n + (shape.output_bytes + partial_sums) * m * n);
  }
};

double math_seconds(const Gpu& gpu, const GemmCurve& curve, const Products& products, Tile tile,
                    int split) {
  const DataType type = products.shape.type;
  const double sms = gpu.multiprocessors.value;
  const auto tiles = static_cast<double>(split * products.tiles(tile));
  const double smooth = curve.smooth_waves.value;
  const double waves = smooth * tiles / sms + (1.0 - smooth) * std::ceil(tiles / sms);
  const double depth =
      static_cast<double>(products.shape.k) / split + curve.prologue_k.value * 2.0 / bytes_of(type);
  const double flops_per_wave = 2.0 * static_cast<double>(tile.m * tile.n) * depth * sms;
  return waves * flops_per_wave / (gpu.peak_flops_per_s(type) * curve.peak_fraction.value);
}

double seconds_of(const Gpu& gpu, const Products& products) {
  const GemmCurve& curve = gemm_curve(gpu, products.shape.type);
  double least = std::numeric_limits<double>::max();
  for (const int split : kSplits) {
    const double memory = products.bytes(split) / memory_bandwidth(gpu);
    for (const Tile tile : kTiles) {
      least = std::min(least, soft_max(math_seconds(gpu, curve, products, tile, split), memory));
    }
  }
  return curve.start_up_us.value * kSecondsPerMicrosecond + least;
}

}  // namespace

double gemm_seconds(const Gpu& gpu, const GemmShape& shape) {
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0 || shape.batch <= 0) {
    return 0.0;
  }
  return seconds_of(gpu, {shape, std::span(&shape.m, 1), shape.batch});
}

double grouped_gemm_seconds(const Gpu& gpu, const GemmShape& shape,
                            std::span<const std::int64_t> rows) {
  const bool any = std::ranges::any_of(rows, [](std::int64_t m) { return m > 0; });
  return any && shape.n > 0 && shape.k > 0 ? seconds_of(gpu, {shape, rows, 1}) : 0.0;
}

double memory_seconds(const Gpu& gpu, double bytes) {
  return bytes <= 0.0 ? 0.0
                      : gpu.profile.memory.start_up_us.value * kSecondsPerMicrosecond +
                            bytes / memory_bandwidth(gpu);
}

double issue_seconds(const Gpu& gpu, int kernels) {
  return gpu.profile.host_issue.kernel_us.value * kSecondsPerMicrosecond * kernels;
}

}  // namespace dipsim
