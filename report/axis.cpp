// SPDX-License-Identifier: Apache-2.0
#include "report/axis.hpp"

#include <algorithm>
#include <cmath>

namespace dipsim {

namespace {

/// The least of 1, 2, 5 and 10 that is not below `digit`.
double round_up(double digit) {
  for (const double round : {1.0, 2.0, 5.0}) {
    if (digit <= round) {
      return round;
    }
  }
  return 10.0;
}

}  // namespace

double Scale::operator()(double value) const {
  if (!(high > low)) {
    return (from + to) / 2.0;
  }
  return from + (value - low) / (high - low) * (to - from);
}

Ticks nice_ticks(double low, double high, int wanted) {
  Ticks ticks;
  if (!(high > low) || !std::isfinite(low) || !std::isfinite(high)) {
    ticks.values = {low};
    return ticks;
  }
  const double rough = (high - low) / std::max(wanted, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double step = power * round_up(rough / power);
  ticks.decimals = std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 9);
  const double first = std::ceil(low / step - 1e-9);
  const double last = std::floor(high / step + 1e-9);
  for (double i = first; i <= last; i += 1.0) {
    ticks.values.push_back(i * step);
  }
  return ticks;
}

}  // namespace dipsim
