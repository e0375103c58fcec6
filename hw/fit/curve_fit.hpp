// SPDX-License-Identifier: Apache-2.0
// Non-linear least squares for the parameters of a curve.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace dipsim {

/// Where one parameter may lie: in (lower, upper).
struct FitRange {
  double start = 1.0;  ///< first value that is tried
  double lower = 0.0;
  double upper = std::numeric_limits<double>::infinity();
};

struct CurveFitOptions {
  /// Residuals beyond this count by their size, not their square (Huber 1964): a few bad
  /// measurements don't bend the curve.
  double huber = 0.1;
  int max_steps = 200;
  /// Further starts, at which every parameter is a factor of 1/spread or spread off its first
  /// value, in a fixed pattern.
  int more_starts = 7;
  double spread = 3.0;
};

struct CurveFit {
  std::vector<double> parameters;
  double loss = 0.0;  ///< Σ of Huber's function over the residuals
  bool converged = false;
};

/// Residuals of the measurements at these parameters, for instance log(predicted / measured).
using Residuals = std::function<std::vector<double>(std::span<const double> parameters)>;

/// The parameters of least loss that Levenberg and Marquardt's method (Marquardt 1963) finds from
/// several starts. It works on the logarithm of what a parameter has above its lower end (on the
/// logit of its place in the range where that has an upper end), with a numeric Jacobian. Equal
/// inputs give equal results. Throws Input when the start of a range lies outside it, or when there
/// are no residuals.
CurveFit fit_curve(const Residuals& residuals, std::span<const FitRange> ranges,
                   const CurveFitOptions& options = {});

}  // namespace dipsim
