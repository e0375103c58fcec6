// SPDX-License-Identifier: Apache-2.0
#include "sim/core/random.hpp"

#include <cmath>
#include <numbers>

namespace dipsim {

namespace {

/// SplitMix64 finaliser (Steele, Lea and Flood 2014): spreads close seeds far apart.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

std::uint64_t stream_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a over the purpose
  for (const char c : purpose) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return mix(mix(mix(seed) ^ hash) ^ index);
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t index)
    : engine_(stream_seed(seed, purpose, index)) {}

double RandomStream::uniform() { return static_cast<double>(bits() >> 11U) * 0x1.0p-53; }

std::int64_t RandomStream::integer(std::int64_t low, std::int64_t high) {
  const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  if (range == 0) {
    return static_cast<std::int64_t>(bits());
  }
  // Reject the incomplete last block so that every value is equally likely.
  const std::uint64_t limit = ~std::uint64_t{0} - (~std::uint64_t{0} % range + 1) % range;
  std::uint64_t draw = bits();
  while (draw > limit) {
    draw = bits();
  }
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + draw % range);
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double RandomStream::log_normal(double mu, double sigma) { return std::exp(mu + sigma * normal()); }

double RandomStream::exponential(double mean) { return -mean * std::log(1.0 - uniform()); }

double RandomStream::gamma(double shape, double scale) {
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double root = 1.0 + c * x;
    if (root <= 0.0) {
      continue;
    }
    const double v = root * root * root;
    if (std::log(1.0 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return d * v * scale;
    }
  }
}

}  // namespace dipsim
