// SPDX-License-Identifier: Apache-2.0
#include "hw/fit/curve_fit.hpp"

#include "sim/core/error.hpp"

#include <Eigen/Dense>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace dipsim {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kStep = 1e-5;          // of the numeric Jacobian
constexpr double kLeastGain = 1e-12;    // relative fall of the loss that counts as progress
constexpr double kMaxDamping = 1e12;    // beyond it no step helps
constexpr double kMaxLogarithm = 60.0;  // keeps exp() finite

double bounded(double u) { return std::clamp(u, -kMaxLogarithm, kMaxLogarithm); }

double to_value(double u, const FitRange& range) {
  return range.lower + (std::isinf(range.upper)
                            ? std::exp(u)
                            : (range.upper - range.lower) / (1.0 + std::exp(-u)));
}

double from_value(double value, const FitRange& range) {
  const double above = value - range.lower;
  return std::isinf(range.upper) ? std::log(above) : std::log(above / (range.upper - value));
}

/// The fit of one curve: parameters as unbounded numbers u.
class LevenbergMarquardt {
 public:
  LevenbergMarquardt(const Residuals& residuals, std::span<const FitRange> ranges,
                     const CurveFitOptions& options)
      : residuals_(residuals), ranges_(ranges), options_(options) {}

  [[nodiscard]] std::vector<double> values(const VectorXd& u) const {
    std::vector<double> out;
    out.reserve(ranges_.size());
    for (std::size_t j = 0; j < ranges_.size(); ++j) {
      out.push_back(to_value(u(static_cast<Index>(j)), ranges_[j]));
    }
    return out;
  }

  [[nodiscard]] CurveFit from(VectorXd u) const {
    VectorXd r = residuals_at(u);
    double loss = huber_loss(r);
    double damping = 1e-2;
    bool converged = false;
    for (int step = 0; step < options_.max_steps && !converged; ++step) {
      const MatrixXd jacobian = jacobian_at(u, r);
      const VectorXd weights = huber_weights(r);
      const MatrixXd hessian = jacobian.transpose() * weights.asDiagonal() * jacobian;
      const VectorXd gradient = jacobian.transpose() * weights.asDiagonal() * r;
      double gain = 0.0;
      for (; damping < kMaxDamping && gain <= 0.0; damping *= 4.0) {
        MatrixXd damped = hessian;
        damped.diagonal() += damping * (hessian.diagonal().array() + 1e-9).matrix();
        const VectorXd next = (u - damped.ldlt().solve(gradient)).unaryExpr(&bounded);
        const VectorXd r_next = residuals_at(next);
        const double next_loss = huber_loss(r_next);
        if (next_loss < loss) {
          gain = loss - next_loss;
          u = next;
          r = r_next;
          loss = next_loss;
        }
      }
      converged = gain <= kLeastGain * (loss + kLeastGain);
      damping = std::max(damping / 40.0, 1e-12);
    }
    return {values(u), loss, converged};
  }

 private:
  [[nodiscard]] VectorXd residuals_at(const VectorXd& u) const {
    const std::vector<double> r = residuals_(values(u));
    return Eigen::Map<const VectorXd>(r.data(), static_cast<Index>(r.size()));
  }

  [[nodiscard]] MatrixXd jacobian_at(const VectorXd& u, const VectorXd& r) const {
    MatrixXd jacobian(r.size(), u.size());
    for (Index j = 0; j < u.size(); ++j) {
      VectorXd moved = u;
      moved(j) += kStep;
      jacobian.col(j) = (residuals_at(moved) - r) / kStep;
    }
    return jacobian;
  }

  [[nodiscard]] double huber_loss(const VectorXd& r) const {
    double loss = 0.0;
    for (const double x : r) {
      const double size = std::abs(x);
      loss += size <= options_.huber ? 0.5 * x * x : options_.huber * (size - 0.5 * options_.huber);
    }
    return std::isfinite(loss) ? loss : std::numeric_limits<double>::max();
  }

  [[nodiscard]] VectorXd huber_weights(const VectorXd& r) const {
    return r.unaryExpr([&](double x) {
      return std::abs(x) <= options_.huber ? 1.0 : options_.huber / std::abs(x);
    });
  }

  const Residuals& residuals_;
  std::span<const FitRange> ranges_;
  const CurveFitOptions& options_;
};

/// Start number n: a fixed pattern of signs says which way each parameter moves; start 0 is the
/// given one.
VectorXd start_number(int n, std::span<const FitRange> ranges, double spread) {
  VectorXd u(static_cast<Index>(ranges.size()));
  for (std::size_t j = 0; j < ranges.size(); ++j) {
    const double sign = ((static_cast<unsigned>(n) * (j + 1)) >> (j % 3)) % 2 == 0 ? 1.0 : -1.0;
    u(static_cast<Index>(j)) =
        from_value(ranges[j].start, ranges[j]) + (n == 0 ? 0.0 : sign * std::log(spread));
  }
  return u;
}

void check(std::span<const FitRange> ranges) {
  for (const FitRange& range : ranges) {
    if (range.start <= range.lower || range.start >= range.upper || std::isnan(range.start)) {
      fail_input("fit", fmt::format("a parameter starts at {}, outside ({}, {})", range.start,
                                    range.lower, range.upper));
    }
  }
}

}  // namespace

CurveFit fit_curve(const Residuals& residuals, std::span<const FitRange> ranges,
                   const CurveFitOptions& options) {
  check(ranges);
  std::vector<double> starts;
  starts.reserve(ranges.size());
  for (const FitRange& range : ranges) {
    starts.push_back(range.start);
  }
  if (residuals(starts).empty()) {
    fail_input("fit", "there is no measurement to fit to");
  }
  const LevenbergMarquardt method(residuals, ranges, options);
  CurveFit best;
  for (int n = 0; n <= options.more_starts; ++n) {
    CurveFit fit = method.from(start_number(n, ranges, options.spread));
    if (n == 0 || fit.loss < best.loss) {
      best = std::move(fit);
    }
  }
  return best;
}

}  // namespace dipsim
