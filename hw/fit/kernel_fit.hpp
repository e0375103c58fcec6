// SPDX-License-Identifier: Apache-2.0
// Curves of a HardwareProfile from measured kernels.
#pragma once

#include "sim/cluster/kernel_time.hpp"
#include "sim/cluster/profile.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace dipsim {

/// A measured matrix product. `gpu` gives data sheet and memory curve and outlives the sample.
struct GemmSample {
  const Gpu* gpu = nullptr;
  GemmShape shape;
  double seconds = 0.0;
};

struct AttentionSample {
  AttentionShape shape;
  double seconds = 0.0;
};

/// A measured kernel that is bound by memory.
struct MemorySample {
  double bytes = 0.0;
  double seconds = 0.0;
};

/// Curves for products in 16-bit types and tf32, and in 8-bit types: one start-up, k0 and wave
/// effect, and a peak fraction for each. A curve without a sample of its types is absent.
struct GemmFit {
  std::optional<GemmCurve> wide;
  std::optional<GemmCurve> fp8;
};

/// Least squares of log(predicted / measured) over GPUs that share one architecture. Fitted
/// parameters carry `source`. Throws Input where there is no sample.
GemmFit fit_gemm(std::span<const GemmSample> samples, const std::string& source);

/// What fit_attention may change: for a handful of samples the rates alone (peak and head factors).
enum class AttentionUnknowns : std::uint8_t { All, Rates };

/// Parameters that the samples say nothing about stay those of `prior`, provenance included:
/// edge_pairs without a causal mask, a head factor without that head dimension (or only under
/// a window that the kernel skips by: there its effect is that of window_pairs), window_pairs
/// without such a window. `prior` also is the first start. All samples are of one direction and one
/// type. Throws Input where there is no sample.
AttentionCurve fit_attention(const Gpu& gpu, const AttentionCurve& prior,
                             std::span<const AttentionSample> samples, const std::string& source,
                             AttentionUnknowns unknowns = AttentionUnknowns::All);

/// Start-up and bandwidth by fit_nonnegative. Throws Input where there is no sample or the times do
/// not grow with the bytes.
BandwidthCurve fit_memory(const Gpu& gpu, std::span<const MemorySample> samples,
                          const std::string& source);

/// The start-up alone, at the bandwidth of `gpu`.
Parameter fit_memory_start(const Gpu& gpu, std::span<const MemorySample> samples,
                           const std::string& source);

}  // namespace dipsim
