// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/kernel_math.hpp"
#include "sim/cluster/kernel_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dipsim {

namespace {

const AttentionCurve* curve_or_null(const HardwareProfile& profile, const AttentionShape& shape) {
  const auto or_null = [](const std::optional<AttentionCurve>& curve) {
    return curve ? &*curve : nullptr;
  };
  switch (shape.type) {
    case DataType::Bf16:
      if (shape.backward && shape.deterministic && profile.attention_backward_deterministic) {
        return &*profile.attention_backward_deterministic;
      }
      return shape.backward ? &profile.attention_backward : &profile.attention_forward;
    case DataType::Fp8:
      return or_null(shape.backward ? profile.attention_backward_fp8
                                    : profile.attention_forward_fp8);
    case DataType::Mxfp8:
      return or_null(shape.backward ? profile.attention_backward_mxfp8
                                    : profile.attention_forward_mxfp8);
    case DataType::Tf32:
      break;
  }
  return nullptr;
}

const AttentionCurve& curve_of(const Gpu& gpu, const AttentionShape& shape) {
  const AttentionCurve* const curve = curve_or_null(gpu.profile, shape);
  if (curve == nullptr || gpu.peak_flops_per_s(shape.type) <= 0.0) {
    fail_without_type(gpu, "fused attention", shape.type);
  }
  return *curve;
}

/// Head dimension that fused kernels are compiled for (FlashAttention-2 and -3 dispatch).
int padded(int head_dim) {
  constexpr std::array<int, 5> kCompiled = {64, 96, 128, 192, 256};
  const auto* const fits = std::ranges::lower_bound(kCompiled, head_dim);
  return fits == kCompiled.end() ? head_dim : *fits;
}

/// Relative speed at this head dimension: linear between those that have a factor, constant
/// outside.
double head_factor(const AttentionCurve& curve, double head_dim) {
  struct Knot {
    double head_dim;
    double factor;
  };

  const std::array<Knot, 4> knots = {{{64.0, curve.at_64.value},
                                      {128.0, 1.0},
                                      {192.0, curve.at_192.value},
                                      {256.0, curve.at_256.value}}};
  const double d = std::clamp(head_dim, knots.front().head_dim, knots.back().head_dim);
  std::size_t upper = 1;
  while (knots[upper].head_dim < d) {
    ++upper;
  }
  const Knot& a = knots[upper - 1];
  const Knot& b = knots[upper];
  return a.factor + (b.factor - a.factor) * (d - a.head_dim) / (b.head_dim - a.head_dim);
}

/// Speed relative to the curves.
double kernel_speed(const AttentionSpeeds& speeds, const AttentionShape& shape) {
  switch (shape.kernel) {
    case AttentionKernel::Flash2:
      return shape.backward ? speeds.flash2_backward.value : speeds.flash2_forward.value;
    case AttentionKernel::Triton:
      return shape.backward ? speeds.triton_backward.value : speeds.triton_forward.value;
    case AttentionKernel::Fused:
    case AttentionKernel::WrittenOut:
      break;
  }
  return 1.0;
}

/// Pairs that the kernel computes: those that count, and the masked ones in tiles on an edge.
double visited_pairs(const AttentionCurve& curve, const AttentionShape& shape) {
  const auto tokens = static_cast<double>(shape.tokens);
  const bool windowed = shape.window > 0 && skips_outside_window(shape);
  const double diagonal = shape.causal ? curve.edge_pairs.value : 0.0;
  const double window = windowed ? curve.window_pairs.value : 0.0;
  const double counted = shape.window > 0 && !windowed
                             ? 0.5 * tokens * tokens / static_cast<double>(shape.sequences)
                             : shape.pairs;
  return counted + (diagonal + window) * tokens;
}

/// Queries, keys and values in, results out; backward reads the results and their gradient too and
/// writes three gradients, together twice as much.
double bytes_of(const AttentionShape& shape, double value_dim) {
  const double heads = shape.heads + (shape.kv_heads > 0 ? shape.kv_heads : shape.heads);
  const double forward = static_cast<double>(shape.tokens) * heads * (shape.head_dim + value_dim) *
                         bytes_of(shape.type);
  return shape.backward ? 2.0 * forward : forward;
}

}  // namespace

std::string_view name_of(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::Fused:
      return "fused";
    case AttentionKernel::Flash2:
      return "flash2";
    case AttentionKernel::Triton:
      return "triton";
    case AttentionKernel::WrittenOut:
      return "written-out";
  }
  return "";
}

// Backward kernels in 8-bit types of cuDNN 9.22 visit everything under the diagonal: their time
// grows with the square of the sequence, the window notwithstanding
// (github:NVIDIA/cudnn-frontend@3929da2 benchmark/sdpa_benchmark_training/results/gpt_oss).
bool skips_outside_window(const AttentionShape& shape) {
  return !shape.backward || bytes_of(shape.type) > 1;
}

double window_pairs(double tokens, double window) {
  const double seen = std::min(tokens, window);
  return tokens * seen - 0.5 * seen * (seen - 1.0);
}

double attention_seconds(const Gpu& gpu, const AttentionShape& shape) {
  if (shape.tokens <= 0 || shape.pairs <= 0.0) {
    return 0.0;
  }
  const AttentionCurve& curve = curve_of(gpu, shape);
  const int value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
  AttentionShape executed = shape;
  executed.pairs = visited_pairs(curve, shape);
  executed.head_dim = padded(shape.head_dim);
  executed.value_dim = padded(value_dim);
  // Loading queries and writing results: in proportion to the head dimension.
  const double rows = static_cast<double>(shape.tokens) * shape.heads *
                      (executed.head_dim + executed.value_dim) / 256.0;
  const double speed = gpu.peak_flops_per_s(shape.type) * curve.peak_fraction.value *
                       head_factor(curve, executed.head_dim) *
                       kernel_speed(gpu.profile.attention_speeds, shape);
  const double math =
      curve.row_ns.value * 1e-9 * rows / gpu.multiprocessors.value + executed.flops() / speed;
  const double memory = bytes_of(shape, value_dim) / memory_bandwidth(gpu);
  return curve.start_up_us.value * kSecondsPerMicrosecond + soft_max(math, memory);
}

}  // namespace dipsim
