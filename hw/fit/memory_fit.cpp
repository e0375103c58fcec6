// SPDX-License-Identifier: Apache-2.0
#include "hw/fit/kernel_fit.hpp"
#include "hw/fit/nnls.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <vector>

namespace dipsim {

namespace {

double peak_bytes_per_s(const Gpu& gpu) { return gpu.memory_gbytes_per_s.value * 1e9; }

}  // namespace

BandwidthCurve fit_memory(const Gpu& gpu, std::span<const MemorySample> samples,
                          const std::string& source) {
  std::vector<LinearSample> rows;
  for (const MemorySample& sample : samples) {
    rows.push_back({{1.0, sample.bytes}, sample.seconds});
  }
  const std::vector<double> weights = fit_nonnegative(rows);
  if (weights[1] <= 0.0) {
    fail_input("fit", "the times of the memory kernels do not grow with their bytes");
  }
  const double fraction = std::min(1.0, 1.0 / (weights[1] * peak_bytes_per_s(gpu)));
  return {.start_up_us = {weights[0] * 1e6, Evidence::Fitted, source},
          .bandwidth_fraction = {fraction, Evidence::Fitted, source}};
}

Parameter fit_memory_start(const Gpu& gpu, std::span<const MemorySample> samples,
                           const std::string& source) {
  Gpu at_once = gpu;
  at_once.profile.memory.start_up_us.value = 0.0;
  // What is left after the transfer is the start-up; never less than nothing. Relative weights: the
  // minimum of Σ ((a + rest) / t − 1)² over a.
  double over = 0.0;
  double under = 0.0;
  for (const MemorySample& sample : samples) {
    const double weight = 1.0 / (sample.seconds * sample.seconds);
    over += weight * (sample.seconds - memory_seconds(at_once, sample.bytes));
    under += weight;
  }
  if (under <= 0.0) {
    fail_input("fit", "there is no memory kernel to fit to");
  }
  return {std::max(0.0, over / under) * 1e6, Evidence::Fitted, source};
}

}  // namespace dipsim
