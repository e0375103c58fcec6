// SPDX-License-Identifier: Apache-2.0
// What the kernels of kernel_time.hpp share.
#pragma once

#include "sim/cluster/gpu.hpp"
#include "sim/core/error.hpp"

#include <cmath>
#include <string>

namespace dipsim {

inline constexpr double kSecondsPerMicrosecond = 1e-6;

/// Bytes per second that kernels reach.
inline double memory_bandwidth(const Gpu& gpu) {
  return gpu.memory_gbytes_per_s.value * 1e9 * gpu.profile.memory.bandwidth_fraction.value;
}

/// Soft maximum: the 4-norm. Math and memory traffic overlap, but not perfectly.
inline double soft_max(double a, double b) {
  const double a2 = a * a;
  const double b2 = b * b;
  return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

/// Throws Infeasible: the GPU file has no such curve, or no such peak.
[[noreturn]] inline void fail_without_type(const Gpu& gpu, const std::string& what, DataType type) {
  fail_infeasible("GPU " + gpu.name, "has no " + what + " in " + std::string(name_of(type)) +
                                         "; nearest: " + std::string(name_of(DataType::Bf16)));
}

}  // namespace dipsim
