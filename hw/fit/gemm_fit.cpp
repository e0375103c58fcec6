// SPDX-License-Identifier: Apache-2.0
#include "hw/fit/curve_fit.hpp"
#include "hw/fit/kernel_fit.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace dipsim {

namespace {

// Ranges that physics sets. A kernel is launched and drained in a few microseconds.
constexpr double kLeastStartUpMicroseconds = 2.0;
constexpr double kMaxStartUpMicroseconds = 10.0;

enum Unknown : std::uint8_t { StartUp, Prologue, Smooth, WidePeak, Fp8Peak, Unknowns };

constexpr std::array<FitRange, Unknowns> kRanges = {
    {{.start = 4.0, .lower = kLeastStartUpMicroseconds, .upper = kMaxStartUpMicroseconds},
     {.start = 100.0, .upper = 5'000.0},
     {.start = 0.1, .upper = 1.0},
     {.start = 0.75, .upper = 1.0},
     {.start = 0.7, .upper = 1.0}}};

bool is_fp8(const GemmShape& shape) { return bytes_of(shape.type) == 1; }

GemmCurve curve_at(std::span<const double> x, Unknown peak, const std::string& source) {
  const auto fitted = [&](double value) { return Parameter{value, Evidence::Fitted, source}; };
  return {.start_up_us = fitted(x[StartUp]),
          .peak_fraction = fitted(x[peak]),
          .prologue_k = fitted(x[Prologue]),
          .smooth_waves = fitted(x[Smooth])};
}

}  // namespace

GemmFit fit_gemm(std::span<const GemmSample> samples, const std::string& source) {
  if (samples.empty()) {
    fail_input("fit", "there is no matrix product to fit to");
  }
  std::map<const Gpu*, Gpu> gpus;
  for (const GemmSample& sample : samples) {
    gpus.try_emplace(sample.gpu, *sample.gpu);
  }
  const auto residuals = [&](std::span<const double> x) {
    for (auto& [key, gpu] : gpus) {
      gpu.profile.gemm = curve_at(x, WidePeak, "");
      gpu.profile.gemm_fp8 = curve_at(x, Fp8Peak, "");
    }
    std::vector<double> out;
    out.reserve(samples.size());
    for (const GemmSample& sample : samples) {
      out.push_back(std::log(gemm_seconds(gpus.at(sample.gpu), sample.shape) / sample.seconds));
    }
    return out;
  };
  const CurveFit fit = fit_curve(residuals, kRanges, {.more_starts = 3, .spread = 2.0});
  GemmFit curves;
  if (std::ranges::any_of(samples, [](const auto& s) { return !is_fp8(s.shape); })) {
    curves.wide = curve_at(fit.parameters, WidePeak, source);
  }
  if (std::ranges::any_of(samples, [](const auto& s) { return is_fp8(s.shape); })) {
    curves.fp8 = curve_at(fit.parameters, Fp8Peak, source);
  }
  return curves;
}

}  // namespace dipsim
