// SPDX-License-Identifier: Apache-2.0
#include "hw/fit/nnls.hpp"

#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

double loss(const std::vector<LinearSample>& samples, const std::vector<double>& weights) {
  double sum = 0.0;
  for (const LinearSample& sample : samples) {
    double predicted = 0.0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      predicted += sample.features[j] * weights[j];
    }
    const double error = predicted / sample.seconds - 1.0;
    sum += error * error;
  }
  return sum;
}

/// The exact solution of a 2 x 2 system of normal equations.
std::array<double, 2> solve(double a, double b, double d, double x, double y) {
  const double determinant = a * d - b * b;
  return {(x * d - b * y) / determinant, (a * y - b * x) / determinant};
}

/// Least loss over all sets of free weights, each solved on its own: two features.
double brute_force(const std::vector<LinearSample>& samples) {
  double aa = 0.0;
  double ab = 0.0;
  double bb = 0.0;
  double a1 = 0.0;
  double b1 = 0.0;
  for (const LinearSample& sample : samples) {
    const double a = sample.features[0] / sample.seconds;
    const double b = sample.features[1] / sample.seconds;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  double least = loss(samples, {0.0, 0.0});
  least = std::min(least, loss(samples, {std::max(0.0, a1 / aa), 0.0}));
  least = std::min(least, loss(samples, {0.0, std::max(0.0, b1 / bb)}));
  const auto both = solve(aa, ab, bb, a1, b1);
  if (both[0] >= 0.0 && both[1] >= 0.0) {
    least = std::min(least, loss(samples, {both[0], both[1]}));
  }
  return least;
}

}  // namespace

TEST_CASE("weights of exact data are found, whatever their size") {
  std::vector<LinearSample> samples;
  for (const double bytes : {1e3, 1e6, 1e7, 1e9}) {
    for (const double flops : {1e6, 1e9, 1e12}) {
      samples.push_back({{1.0, bytes, flops}, 5e-6 + 4e-13 * bytes + 1.4e-15 * flops});
    }
  }
  const std::vector<double> weights = fit_nonnegative(samples);
  REQUIRE(weights.size() == 3);
  CHECK(weights[0] == doctest::Approx(5e-6).epsilon(1e-6));
  CHECK(weights[1] == doctest::Approx(4e-13).epsilon(1e-6));
  CHECK(weights[2] == doctest::Approx(1.4e-15).epsilon(1e-6));
}

TEST_CASE("a weight that would be negative is zero, and the others are fitted without it") {
  // 10 - 2 x at x = 1, 2, 3. With x at zero the best constant c minimises the sum of (c/t - 1)^2:
  // c = sum(1/t) / sum(1/t^2).
  std::vector<LinearSample> samples;
  double first = 0.0;
  double second = 0.0;
  for (const double x : {1.0, 2.0, 3.0}) {
    const double t = 10.0 - 2.0 * x;
    samples.push_back({{1.0, x}, t});
    first += 1.0 / t;
    second += 1.0 / (t * t);
  }
  const std::vector<double> weights = fit_nonnegative(samples);
  CHECK(weights[1] == 0.0);
  CHECK(weights[0] == doctest::Approx(first / second));
}

TEST_CASE("short kernels count as much as long ones") {
  // Both are off the line t = x by 10 %, one up and one down.
  const std::vector<LinearSample> samples = {{{1.0}, 1.1}, {{1e6}, 0.9e6}};
  const double relative = (1.0 / 1.1 + 1.0 / 0.9) / (1.0 / 1.21 + 1.0 / 0.81);
  CHECK(fit_nonnegative(samples)[0] == doctest::Approx(relative));
}

TEST_CASE("a feature that no sample has gets no weight") {
  const std::vector<LinearSample> samples = {{{2.0, 0.0}, 4.0}, {{3.0, 0.0}, 6.0}};
  const std::vector<double> weights = fit_nonnegative(samples);
  CHECK(weights[0] == doctest::Approx(2.0));
  CHECK(weights[1] == 0.0);
}

TEST_CASE("no choice of free weights is better, on random samples") {
  const bool holds = rc::check([] {
    std::vector<LinearSample> samples;
    const int count = *rc::gen::inRange(3, 9);
    samples.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      samples.push_back({{*rc::gen::inRange(1, 100) * 1.0, *rc::gen::inRange(1, 100) * 1.0},
                         *rc::gen::inRange(1, 1000) * 1e-3});
    }
    const std::vector<double> weights = fit_nonnegative(samples);
    RC_ASSERT(weights[0] >= 0.0);
    RC_ASSERT(weights[1] >= 0.0);
    RC_ASSERT(loss(samples, weights) <= brute_force(samples) * (1.0 + 1e-9) + 1e-9);
  });
  CHECK(holds);
}

TEST_CASE("samples that cannot be fitted are refused") {
  const auto refusal = [](std::vector<LinearSample> samples) {
    return test::error_of([&] { fit_nonnegative(samples); }).message();
  };
  CHECK(refusal({}).find("no sample") != std::string::npos);
  CHECK(refusal({{{1.0}, 0.0}}).find("must be positive") != std::string::npos);
  CHECK(refusal({{{1.0}, 1.0}, {{1.0, 2.0}, 1.0}}).find("2 features") != std::string::npos);
}
