// SPDX-License-Identifier: Apache-2.0
#include "sim/core/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace dipsim {
namespace {

constexpr std::uint64_t kMaxBits = std::numeric_limits<std::uint64_t>::max();

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
};

template <class Draw>
Moments moments_of(int count, const Draw& draw) {
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < count; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / count;
  return {mean, squares / count - mean * mean};
}

// Computed with an independent program: FNV-1a of the purpose, SplitMix64 finaliser, and the
// 64-bit Mersenne Twister whose 10,000th output the C++ standard gives.
TEST_CASE("the first values of a stream never change") {
  struct Golden {
    std::uint64_t seed;
    std::string_view purpose;
    std::uint64_t index;
    std::array<std::uint64_t, 3> first;
  };

  const std::array golden = {
      Golden{0, "", 0, {12969122124171664625U, 11810067565772307118U, 7606481804067804033U}},
      Golden{1, "packing", 0, {11254441825469160499U, 5874413484523077397U, 993855848724503912U}},
      Golden{1, "packing", 1, {4057272314612381643U, 12233761058027321320U, 13377267683350083309U}},
      Golden{2, "packing", 0, {17973814572249109654U, 4917823420572111218U, 9434126056291701621U}},
      Golden{kMaxBits,
             "engine jitter",
             kMaxBits,
             {12612487022584376064U, 12276940642505801969U, 7676212945890575603U}}};
  for (const Golden& known : golden) {
    RandomStream stream(known.seed, known.purpose, known.index);
    for (const std::uint64_t value : known.first) {
      CHECK(stream.bits() == value);
    }
  }
  RandomStream uniform(1, "packing");
  CHECK(uniform.uniform() == 0.6101045138642694);
  CHECK(uniform.uniform() == 0.31845259309990304);
  RandomStream integers(1, "packing");
  for (const std::int64_t value : {3, -9, 4, -6, -9, -6, -3, 8, -7, 5, 1, 4}) {
    CHECK(integers.integer(-10, 10) == value);
  }
}

TEST_CASE("streams of another seed, purpose or index are uncorrelated") {
  constexpr int kCount = 20'000;
  const auto correlation = [](RandomStream a, RandomStream b) {
    double sum = 0.0;
    for (int i = 0; i < kCount; ++i) {
      sum += (a.uniform() - 0.5) * (b.uniform() - 0.5);
    }
    return sum / kCount * 12.0;  // the variance of a uniform variate is 1/12
  };
  // Five standard deviations of the estimate.
  const double limit = 5.0 / std::sqrt(static_cast<double>(kCount));
  const RandomStream base(7, "images", 3);
  CHECK(std::abs(correlation(base, RandomStream(8, "images", 3))) < limit);
  CHECK(std::abs(correlation(base, RandomStream(7, "image", 3))) < limit);
  CHECK(std::abs(correlation(base, RandomStream(7, "images", 4))) < limit);
  CHECK(std::abs(correlation(base, RandomStream(3, "images", 7))) < limit);
}

TEST_CASE("a thousand neighbouring streams start with different values") {
  std::vector<std::uint64_t> first;
  for (std::uint64_t index = 0; index < 1000; ++index) {
    first.push_back(RandomStream(1, "x", index).bits());
    first.push_back(RandomStream(index + 2, "x", 0).bits());
  }
  std::ranges::sort(first);
  CHECK(std::ranges::adjacent_find(first) == first.end());
}

// Tolerances are five standard deviations of the sample moments.
TEST_CASE("uniform values are at least 0 and below 1, with mean 1/2 and variance 1/12") {
  RandomStream stream(1, "uniform");
  double least = 1.0;
  double largest = 0.0;
  const Moments m = moments_of(100'000, [&] {
    const double x = stream.uniform();
    least = std::min(least, x);
    largest = std::max(largest, x);
    return x;
  });
  CHECK(least >= 0.0);
  CHECK(largest < 1.0);
  CHECK(std::abs(m.mean - 0.5) < 0.005);
  CHECK(std::abs(m.variance - 1.0 / 12.0) < 0.0013);
}

TEST_CASE("normal values have mean 0, variance 1 and the right tails") {
  RandomStream stream(1, "normal");
  int beyond_two = 0;
  const Moments m = moments_of(100'000, [&] {
    const double x = stream.normal();
    beyond_two += std::abs(x) > 2.0 ? 1 : 0;
    return x;
  });
  CHECK(std::abs(m.mean) < 0.016);
  CHECK(std::abs(m.variance - 1.0) < 0.023);
  CHECK(std::abs(beyond_two / 100'000.0 - 0.0455) < 0.0034);
}

TEST_CASE("log-normal, exponential and gamma values have the moments of their distributions") {
  RandomStream stream(1, "moments");
  // exp(mu + sigma²/2) and (exp(sigma²) − 1) exp(2 mu + sigma²)
  const Moments log_normal = moments_of(200'000, [&] { return stream.log_normal(0.3, 0.5); });
  CHECK(log_normal.mean == doctest::Approx(std::exp(0.425)).epsilon(0.01));
  CHECK(log_normal.variance ==
        doctest::Approx((std::exp(0.25) - 1.0) * std::exp(0.85)).epsilon(0.05));
  const Moments exponential = moments_of(200'000, [&] { return stream.exponential(3.0); });
  CHECK(exponential.mean == doctest::Approx(3.0).epsilon(0.012));
  CHECK(exponential.variance == doctest::Approx(9.0).epsilon(0.04));
  for (const double shape : {1.0, 2.5, 30.0}) {
    CAPTURE(shape);
    const Moments gamma = moments_of(200'000, [&] { return stream.gamma(shape, 2.0); });
    CHECK(gamma.mean == doctest::Approx(2.0 * shape).epsilon(0.012));
    CHECK(gamma.variance == doctest::Approx(4.0 * shape).epsilon(0.04));
  }
  CHECK(stream.log_normal(1.0, 0.0) == doctest::Approx(std::exp(1.0)));
}

TEST_CASE("integers reach both ends of every range") {
  RandomStream stream(1, "integer");
  std::array<int, 7> count{};
  for (int i = 0; i < 70'000; ++i) {
    const std::int64_t x = stream.integer(-3, 3);
    REQUIRE(x >= -3);
    REQUIRE(x <= 3);
    ++count[static_cast<std::size_t>(x + 3)];
  }
  for (const int each : count) {
    CHECK(std::abs(each - 10'000) < 500);
  }
  CHECK(stream.integer(5, 5) == 5);
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  CHECK(stream.integer(kHigh, kHigh) == kHigh);
  CHECK(stream.integer(kLow, kLow) == kLow);
  int negative = 0;
  for (int i = 0; i < 10'000; ++i) {
    negative += stream.integer(kLow, kHigh) < 0 ? 1 : 0;
  }
  CHECK(std::abs(negative - 5'000) < 250);
}

TEST_CASE("integers of a range that does not divide 2^64 are unbiased") {
  // 3 · 2^62 values: a bare remainder would draw the first third twice as often as the others.
  constexpr std::int64_t kThird = std::int64_t{1} << 62U;
  RandomStream stream(1, "bias");
  std::array<int, 3> count{};
  constexpr int kCount = 30'000;
  for (int i = 0; i < kCount; ++i) {
    const std::int64_t x = stream.integer(-kThird, 2 * (kThird - 1) + 1);
    ++count[(x >= 0 ? 1U : 0U) + (x >= kThird ? 1U : 0U)];
  }
  for (const int each : count) {
    CHECK(std::abs(each - kCount / 3) < 410);
  }
}

TEST_CASE("a shuffle keeps every item and gives every order equally often") {
  RandomStream stream(1, "shuffle");
  std::array<int, 6> count{};
  for (int i = 0; i < 12'000; ++i) {
    std::array items = {0, 1, 2};
    stream.shuffle(std::span<int>(items));
    auto sorted = items;
    std::ranges::sort(sorted);
    REQUIRE(sorted == std::array{0, 1, 2});
    const bool falling = items[1] > items[2];
    ++count[2 * static_cast<std::size_t>(items[0]) + (falling ? 1U : 0U)];
  }
  for (const int each : count) {
    CHECK(std::abs(each - 2'000) < 210);
  }
  std::vector<int> none;
  stream.shuffle(std::span<int>(none));
  CHECK(none.empty());
}

}  // namespace
}  // namespace dipsim
