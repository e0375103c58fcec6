// SPDX-License-Identifier: Apache-2.0
#include "sim/core/units.hpp"

#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

namespace dipsim {
namespace {

using test::error_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("seconds become the nearest nanosecond, halves away from zero") {
  CHECK(round_to_duration(0.0).count() == 0);
  CHECK(round_to_duration(-0.0).count() == 0);
  CHECK(round_to_duration(0.49e-9).count() == 0);
  CHECK(round_to_duration(0.5e-9).count() == 1);
  CHECK(round_to_duration(1.4e-9).count() == 1);
  CHECK(round_to_duration(2.5e-9).count() == 3);  // to even would be 2
  CHECK(round_to_duration(1.0).count() == 1'000'000'000);
  CHECK(round_to_duration(1e-320).count() == 0);
  CHECK(round_to_duration(kMaxSeconds).count() == 86'400'000'000'000);
}

TEST_CASE("bytes become the nearest byte, halves away from zero") {
  CHECK(round_to_bytes(0.0).count == 0);
  CHECK(round_to_bytes(0.5).count == 1);
  CHECK(round_to_bytes(2.5).count == 3);
  CHECK(round_to_bytes(2.4999).count == 2);
  CHECK(round_to_bytes(4503599627370.5).count == 4503599627371);
  CHECK(round_to_bytes(kMaxBytes).count == 90'000'000'000'000);
}

TEST_CASE("numbers that are no time or size are input errors that name the value") {
  for (const double bad : {kNan, kInfinity, -kInfinity, -1e-12, -1.0, 1e300}) {
    CAPTURE(bad);
    const Error duration = error_of([&] { round_to_duration(bad, "vit layer 3"); });
    CHECK(duration.kind() == ErrorKind::Input);
    CHECK(duration.where() == "vit layer 3");
    const Error bytes = error_of([&] { round_to_bytes(bad, "kv cache"); });
    CHECK(bytes.kind() == ErrorKind::Input);
    CHECK(bytes.where() == "kv cache");
  }
  const Error negative = error_of([] { round_to_duration(-2.5); });
  CHECK(negative.message().find("-2.5") != std::string::npos);
  CHECK(negative.message().find("86400") != std::string::npos);
  CHECK(error_of([] { round_to_duration(kNan); }).message().find("nan") != std::string::npos);
}

TEST_CASE("the limits are the last legal values") {
  CHECK(error_of([] { round_to_duration(std::nextafter(kMaxSeconds, kInfinity)); }).kind() ==
        ErrorKind::Input);
  CHECK(error_of([] { round_to_bytes(std::nextafter(kMaxBytes, kInfinity)); }).kind() ==
        ErrorKind::Input);
}

TEST_CASE("sums of 10^5 of the longest durations and largest sizes fit 64 bits") {
  constexpr double kLargest = 9.2233e18;
  CHECK(kMaxSeconds * 1e9 * 1e5 < kLargest);
  CHECK(kMaxBytes * 1e5 < kLargest);
}

TEST_CASE("bytes add, subtract, scale and compare") {
  Bytes total{10};
  total += Bytes{5};
  total -= Bytes{7};
  CHECK(total == Bytes{8});
  CHECK(Bytes{3} - Bytes{5} == Bytes{-2});
  CHECK(-Bytes{3} == Bytes{-3});
  CHECK(3 * Bytes{4} == Bytes{4} * 3);
  CHECK(Bytes{1} < Bytes{2});
}

TEST_CASE("GB is 10^9 and GiB is 2^30") {
  CHECK(kBytesPerGb == 1'000'000'000.0);
  CHECK(kBytesPerGib == 1'073'741'824.0);
  CHECK(to_gib(Bytes{3'221'225'472}) == 3.0);
  CHECK(to_seconds(Duration{1'500'000'000}) == doctest::Approx(1.5));
  CHECK(to_milliseconds(Duration{1'500'000}) == doctest::Approx(1.5));
}

}  // namespace
}  // namespace dipsim
