// SPDX-License-Identifier: Apache-2.0
#include "hw/fit/nnls.hpp"

#include "sim/core/error.hpp"

#include <Eigen/Dense>
#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>

namespace dipsim {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

void check(std::span<const LinearSample> samples) {
  if (samples.empty()) {
    fail_input("fit", "there is no sample to fit to");
  }
  for (const LinearSample& sample : samples) {
    if (sample.features.size() != samples.front().features.size()) {
      fail_input("fit", fmt::format("a sample has {} features, the first one {}",
                                    sample.features.size(), samples.front().features.size()));
    }
    if (!std::isfinite(sample.seconds) || sample.seconds <= 0.0) {
      fail_input("fit",
                 fmt::format("a measured time is {} s; it must be positive", sample.seconds));
    }
  }
}

/// One row per sample, divided by its time: the right-hand side is 1 everywhere.
MatrixXd relative_rows(std::span<const LinearSample> samples) {
  MatrixXd rows(static_cast<Index>(samples.size()),
                static_cast<Index>(samples.front().features.size()));
  for (Index i = 0; i < rows.rows(); ++i) {
    const LinearSample& sample = samples[static_cast<std::size_t>(i)];
    for (Index j = 0; j < rows.cols(); ++j) {
      rows(i, j) = sample.features[static_cast<std::size_t>(j)] / sample.seconds;
    }
  }
  return rows;
}

/// Columns of length 1: features may differ by many orders of magnitude.
VectorXd normalise(MatrixXd& rows) {
  VectorXd lengths = rows.colwise().norm();
  for (Index j = 0; j < rows.cols(); ++j) {
    if (lengths(j) > 0.0) {
      rows.col(j) /= lengths(j);
    }
  }
  return lengths;
}

/// Lawson and Hanson's active-set method.
class ActiveSet {
 public:
  explicit ActiveSet(const MatrixXd& a)
      : a_(a), b_(VectorXd::Ones(a.rows())), weights_(VectorXd::Zero(a.cols())) {}

  VectorXd solve() {
    // Every round frees one column; the number of rounds is finite in exact arithmetic, the limit
    // guards against rounding.
    for (Index round = 0; round < 10 * a_.cols(); ++round) {
      const Index column = most_wanted();
      if (column < 0) {
        break;
      }
      free_.push_back(column);
      settle();
    }
    return weights_;
  }

 private:
  /// The column at zero whose growth lowers the residual most; -1 where none does.
  [[nodiscard]] Index most_wanted() const {
    const VectorXd gradient = a_.transpose() * (b_ - a_ * weights_);
    Index best = -1;
    double most = 1e-10;
    for (Index j = 0; j < a_.cols(); ++j) {
      if (weights_(j) == 0.0 && gradient(j) > most) {
        most = gradient(j);
        best = j;
      }
    }
    return best;
  }

  [[nodiscard]] VectorXd unconstrained() const {
    MatrixXd columns(a_.rows(), static_cast<Index>(free_.size()));
    for (std::size_t j = 0; j < free_.size(); ++j) {
      columns.col(static_cast<Index>(j)) = a_.col(free_[j]);
    }
    return columns.colPivHouseholderQr().solve(b_);
  }

  /// Goes towards the solution on the free columns; columns that reach zero on the way are fixed
  /// there again.
  void settle() {
    while (!free_.empty()) {
      const VectorXd target = unconstrained();
      const double step = largest_step(target);
      for (std::size_t j = 0; j < free_.size(); ++j) {
        double& weight = weights_(free_[j]);
        weight += step * (target(static_cast<Index>(j)) - weight);
      }
      if (step == 1.0) {
        return;
      }
      std::erase_if(free_, [&](Index column) {
        const bool gone = weights_(column) <= 1e-14;
        weights_(column) = gone ? 0.0 : weights_(column);
        return gone;
      });
    }
  }

  [[nodiscard]] double largest_step(const VectorXd& target) const {
    double step = 1.0;
    for (std::size_t j = 0; j < free_.size(); ++j) {
      const double now = weights_(free_[j]);
      const double then = target(static_cast<Index>(j));
      if (then <= 0.0) {
        step = std::min(step, now / (now - then + std::numeric_limits<double>::min()));
      }
    }
    return step;
  }

  const MatrixXd& a_;
  VectorXd b_;
  VectorXd weights_;
  std::vector<Index> free_;
};

}  // namespace

std::vector<double> fit_nonnegative(std::span<const LinearSample> samples) {
  check(samples);
  MatrixXd rows = relative_rows(samples);
  const VectorXd lengths = normalise(rows);
  const VectorXd weights = ActiveSet(rows).solve();
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(weights.size()));
  for (Index j = 0; j < weights.size(); ++j) {
    out.push_back(lengths(j) > 0.0 ? weights(j) / lengths(j) : 0.0);
  }
  return out;
}

}  // namespace dipsim
