// SPDX-License-Identifier: Apache-2.0
#include "hw/fit/curve_fit.hpp"

#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace dipsim;

constexpr std::array<double, 8> kSizes = {1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3};

/// t = start + size / rate.
double line(double start, double rate, double size) { return start + size / rate; }

/// Residuals of that line on measured times.
Residuals residuals_of(std::vector<std::pair<double, double>> measured) {
  return [measured = std::move(measured)](std::span<const double> x) {
    std::vector<double> out;
    for (const auto& [size, seconds] : measured) {
      out.push_back(std::log(line(x[0], x[1], size) / seconds));
    }
    return out;
  };
}

std::vector<std::pair<double, double>> planted(double start, double rate) {
  std::vector<std::pair<double, double>> measured;
  measured.reserve(kSizes.size());
  for (const double size : kSizes) {
    measured.emplace_back(size, line(start, rate, size));
  }
  return measured;
}

}  // namespace

TEST_CASE("planted parameters are found from a start that is far off") {
  const std::array<FitRange, 2> ranges = {{{.start = 0.01}, {.start = 1e4}}};
  const CurveFit fit = fit_curve(residuals_of(planted(5.0, 7.0)), ranges);
  CHECK(fit.parameters[0] == doctest::Approx(5.0).epsilon(1e-5));
  CHECK(fit.parameters[1] == doctest::Approx(7.0).epsilon(1e-5));
  CHECK(fit.loss < 1e-10);
}

TEST_CASE("a parameter stays in its range, and the others make the best of it") {
  const std::array<FitRange, 2> ranges = {
      {{.start = 2.0, .lower = 1.0, .upper = 3.0}, {.start = 10.0}}};
  const CurveFit fit = fit_curve(residuals_of(planted(5.0, 7.0)), ranges);
  CHECK(fit.parameters[0] > 2.9);
  CHECK(fit.parameters[0] <= 3.0);
  CHECK(fit.loss > 1e-3);
  const std::array<FitRange, 2> above = {
      {{.start = 8.0, .lower = 6.0, .upper = 10.0}, {.start = 10.0}}};
  const CurveFit least = fit_curve(residuals_of(planted(5.0, 7.0)), above);
  CHECK(least.parameters[0] >= 6.0);
  CHECK(least.parameters[0] < 6.1);
}

TEST_CASE("one bad measurement hardly moves the curve, as it does without Huber's weights") {
  auto measured = planted(5.0, 7.0);
  measured[4].second *= 3.0;
  const std::array<FitRange, 2> ranges = {{{.start = 1.0}, {.start = 1.0}}};
  const CurveFit robust = fit_curve(residuals_of(measured), ranges, {.huber = 0.01});
  CHECK(robust.parameters[1] == doctest::Approx(7.0).epsilon(0.02));
  const CurveFit squares = fit_curve(residuals_of(measured), ranges, {.huber = 1e9});
  CHECK(std::abs(squares.parameters[1] / 7.0 - 1.0) > 0.1);
}

TEST_CASE("of two valleys the deeper one is found") {
  // (x - 1)(x - 9) is zero twice; a second residual prefers 9. The start lies in the wrong valley.
  const Residuals two = [](std::span<const double> x) {
    return std::vector<double>{(x[0] - 1.0) * (x[0] - 9.0), 0.5 * (x[0] - 9.0)};
  };
  const std::array<FitRange, 1> ranges = {{{.start = 1.0}}};
  const CurveFit one_start = fit_curve(two, ranges, {.huber = 1e9, .more_starts = 0});
  CHECK(one_start.parameters[0] < 3.0);
  const CurveFit several = fit_curve(two, ranges, {.huber = 1e9, .more_starts = 7, .spread = 8.0});
  CHECK(several.parameters[0] == doctest::Approx(9.0));
}

TEST_CASE("equal inputs give equal fits to the last bit") {
  const std::array<FitRange, 2> ranges = {{{.start = 0.1}, {.start = 100.0}}};
  const auto once = fit_curve(residuals_of(planted(2.0, 3.0)), ranges).parameters;
  CHECK(fit_curve(residuals_of(planted(2.0, 3.0)), ranges).parameters == once);
}

TEST_CASE("a start outside its range and a fit to nothing are refused") {
  const std::array<FitRange, 2> outside = {{{.start = 4.0, .upper = 3.0}, {.start = 1.0}}};
  const auto refused = test::error_of([&] { fit_curve(residuals_of(planted(1, 1)), outside); });
  CHECK(refused.message().find("outside (0, 3)") != std::string::npos);
  const std::array<FitRange, 2> ranges = {{{.start = 1.0}, {.start = 1.0}}};
  const auto empty = test::error_of([&] { fit_curve(residuals_of({}), ranges); });
  CHECK(empty.message().find("no measurement") != std::string::npos);
}
