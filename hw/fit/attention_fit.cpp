// SPDX-License-Identifier: Apache-2.0
#include "hw/fit/curve_fit.hpp"
#include "hw/fit/kernel_fit.hpp"
#include "sim/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace dipsim {

namespace {

// A kernel is launched and drained in a few microseconds. Backward is three: row sums of the
// result's gradient, the gradients, the conversion of those of the queries.
constexpr double kLeastStartUpMicroseconds = 2.0;
constexpr double kMaxStartUpMicroseconds = 10.0;
constexpr double kBackwardKernels = 3.0;
constexpr double kMaxHeadFactor = 1.5;

/// An unknown of the fit: where it stands in the curve, and whether the samples show it.
struct Unknown {
  Parameter AttentionCurve::* member;
  double lower;
  double upper;
  bool seen;
};

std::vector<Unknown> unknowns_in(std::span<const AttentionSample> samples,
                                 AttentionUnknowns which) {
  const bool all_of_them = which == AttentionUnknowns::All;
  const auto any = [&](auto&& holds) {
    return std::ranges::any_of(samples, [&](const auto& s) { return holds(s.shape); });
  };
  const auto windowed = [](const AttentionShape& shape) {
    return shape.window > 0 && skips_outside_window(shape);
  };
  const auto unwindowed_at = [&](int head_dim) {
    return any([&](const auto& s) { return s.head_dim == head_dim && !windowed(s); });
  };
  const double kernels = any([](const auto& s) { return s.backward; }) ? kBackwardKernels : 1.0;
  std::vector<Unknown> all = {
      {&AttentionCurve::start_up_us, kernels * kLeastStartUpMicroseconds,
       kernels * kMaxStartUpMicroseconds, all_of_them},
      {&AttentionCurve::row_ns, 0.0, 1e3, all_of_them},
      {&AttentionCurve::edge_pairs, 0.0, 2e3,
       all_of_them && any([&](const auto& s) { return s.causal && !windowed(s); })},
      {&AttentionCurve::window_pairs, 0.0, 2e3, all_of_them && any(windowed)},
      {&AttentionCurve::peak_fraction, 0.0, 1.0, true},
      {&AttentionCurve::at_64, 0.0, kMaxHeadFactor, unwindowed_at(64)},
      {&AttentionCurve::at_192, 0.0, kMaxHeadFactor, unwindowed_at(192)},
      {&AttentionCurve::at_256, 0.0, kMaxHeadFactor, unwindowed_at(256)}};
  std::erase_if(all, [](const Unknown& unknown) { return !unknown.seen; });
  return all;
}

/// The place of this curve in a profile.
AttentionCurve& slot(HardwareProfile& profile, const AttentionShape& shape) {
  const auto in = [](std::optional<AttentionCurve>& curve) -> AttentionCurve& {
    return curve ? *curve : curve.emplace();
  };
  switch (shape.type) {
    case DataType::Fp8:
      return in(shape.backward ? profile.attention_backward_fp8 : profile.attention_forward_fp8);
    case DataType::Mxfp8:
      return in(shape.backward ? profile.attention_backward_mxfp8
                               : profile.attention_forward_mxfp8);
    default:
      return shape.backward ? profile.attention_backward : profile.attention_forward;
  }
}

}  // namespace

AttentionCurve fit_attention(const Gpu& gpu, const AttentionCurve& prior,
                             std::span<const AttentionSample> samples, const std::string& source,
                             AttentionUnknowns unknowns) {
  if (samples.empty()) {
    fail_input("fit", "there is no attention kernel to fit to");
  }
  Gpu trial = gpu;
  // Deterministic samples fill the curve that they are fitted for.
  trial.profile.attention_backward_deterministic.reset();
  AttentionCurve& curve = slot(trial.profile, samples.front().shape);
  curve = prior;
  const std::vector<Unknown> free = unknowns_in(samples, unknowns);
  std::vector<FitRange> ranges;
  for (const Unknown& unknown : free) {
    const double start = (prior.*unknown.member).value;
    const double width = unknown.upper - unknown.lower;
    ranges.push_back(
        {.start = std::clamp(start, unknown.lower + 0.01 * width, unknown.upper - 0.1 * width),
         .lower = unknown.lower,
         .upper = unknown.upper});
  }
  const auto residuals = [&](std::span<const double> x) {
    for (std::size_t j = 0; j < free.size(); ++j) {
      (curve.*free[j].member).value = x[j];
    }
    std::vector<double> out;
    out.reserve(samples.size());
    for (const AttentionSample& sample : samples) {
      out.push_back(std::log(attention_seconds(trial, sample.shape) / sample.seconds));
    }
    return out;
  };
  const CurveFit fit = fit_curve(residuals, ranges, {.more_starts = 5, .spread = 1.5});
  AttentionCurve fitted = prior;
  for (std::size_t j = 0; j < free.size(); ++j) {
    fitted.*free[j].member = {fit.parameters[j], Evidence::Fitted, source};
  }
  return fitted;
}

}  // namespace dipsim
