// SPDX-License-Identifier: Apache-2.0
// From values to pixels, and round numbers along an axis.
#pragma once

#include <vector>

namespace dipsim {

/// Maps [low, high] to the pixels [from, to]; the middle of them where the range is empty.
struct Scale {
  double low = 0.0;
  double high = 1.0;
  double from = 0.0;
  double to = 1.0;

  [[nodiscard]] double operator()(double value) const;
};

struct Ticks {
  std::vector<double> values;  ///< multiples of 1, 2 or 5 times a power of ten, ascending
  int decimals = 0;            ///< that tell them apart
};

/// About `wanted` round values inside [low, high].
Ticks nice_ticks(double low, double high, int wanted);

}  // namespace dipsim
