// SPDX-License-Identifier: Apache-2.0
// Reproducible random numbers: the engine is specified bit for bit by the standard, and the
// distributions are our own because those of <random> differ between libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <utility>

namespace dipsim {

/// One stream of random numbers. Streams of different (seed, purpose, index) are independent, so
/// work that is split over threads gives the same numbers in any order of execution.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0);

  /// 64 random bits.
  std::uint64_t bits() { return engine_(); }

  /// Uniform in [0, 1), 53 random bits.
  double uniform();

  /// Uniform integer in [low, high], both included; low <= high.
  std::int64_t integer(std::int64_t low, std::int64_t high);

  /// Standard normal variate (Box and Muller 1958).
  double normal();

  /// exp(mu + sigma * normal()).
  double log_normal(double mu, double sigma);

  /// Exponential variate with the given mean.
  double exponential(double mean);

  /// Gamma variate with shape >= 1 and the given scale (Marsaglia and Tsang 2000, algorithm 4.1).
  double gamma(double shape, double scale);

  /// Fisher–Yates shuffle.
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      const auto j = static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(i) - 1));
      std::swap(items[i - 1], items[j]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace dipsim
