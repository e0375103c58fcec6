// SPDX-License-Identifier: Apache-2.0
// Least squares for times that are sums of non-negative costs: start-up, per byte, per FLOP.
#pragma once

#include <span>
#include <vector>

namespace dipsim {

/// A measured time and what it is made of: seconds ≈ Σ features[j] · w[j].
struct LinearSample {
  std::vector<double> features;
  double seconds = 0.0;  ///< > 0
};

/// The weights w ≥ 0, one per feature, that minimise Σ (Σ_j features[j] w[j] / seconds − 1)²: every
/// sample counts by its relative error, long kernels no more than short ones. Active-set method of
/// Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23). A feature that is zero in
/// all samples gets weight 0. Throws Input when there is no sample, when samples differ in their
/// number of features, or when a time is not a positive number.
std::vector<double> fit_nonnegative(std::span<const LinearSample> samples);

}  // namespace dipsim
