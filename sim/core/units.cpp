// SPDX-License-Identifier: Apache-2.0
#include "sim/core/units.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <cmath>

namespace dipsim {

namespace {

double checked(double value, double limit, std::string_view what, std::string_view unit) {
  if (!std::isfinite(value) || value < 0.0 || value > limit) {
    fail_input(std::string(what),
               fmt::format("{} {} is not a number from 0 to {:g} {}", value, unit, limit, unit));
  }
  return value;
}

}  // namespace

Duration round_to_duration(double seconds, std::string_view what) {
  return Duration(std::llround(checked(seconds, kMaxSeconds, what, "s") * 1e9));
}

Bytes round_to_bytes(double bytes, std::string_view what) {
  return Bytes{std::llround(checked(bytes, kMaxBytes, what, "bytes"))};
}

}  // namespace dipsim
