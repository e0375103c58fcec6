// SPDX-License-Identifier: Apache-2.0
#include "sim/core/text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

namespace dipsim {
namespace {

constexpr std::array<std::string_view, 4> kSchedules = {"1f1b", "interleaved", "zb-h1", "dip"};

TEST_CASE("the nearest name has the least edit distance") {
  CHECK(nearest("zbh1", kSchedules) == "zb-h1");  // one insertion
  CHECK(nearest("interleave", kSchedules) == "interleaved");
  CHECK(nearest("dop", kSchedules) == "dip");     // one substitution
  CHECK(nearest("1ff1b", kSchedules) == "1f1b");  // one deletion
  CHECK(nearest("dip", kSchedules) == "dip");
  CHECK(nearest("", kSchedules) == "dip");  // the shortest
}

TEST_CASE("of equally near names the first one wins, and without names there is none") {
  constexpr std::array<std::string_view, 2> kTied = {"ab", "ac"};
  CHECK(nearest("ad", kTied) == "ab");
  CHECK(nearest("x", std::span<const std::string_view>{}).empty());
}

TEST_CASE("an unknown name is reported with the nearest and all known ones") {
  const std::string text = unknown_name("schedule", "dipp", kSchedules);
  CHECK(text ==
        "unknown schedule \"dipp\"; did you mean \"dip\"? known: 1f1b, interleaved, zb-h1, "
        "dip");
  const std::string none = unknown_name("key", "x", std::span<const std::string_view>{});
  CHECK(none.find("\"x\"") != std::string::npos);
  CHECK(none.find("did you mean") == std::string::npos);
}

TEST_CASE("an absurdly long unknown name is not echoed whole") {
  const std::string text = unknown_name("key", std::string(1'000'000, 'x'), kSchedules);
  CHECK(text.size() < 300);
}

TEST_CASE("a long unknown name is not cut inside a character") {
  for (const std::string_view head : {"", "x"}) {
    std::string word(head);
    for (int i = 0; i < 40; ++i) {
      word += "é";  // two bytes
    }
    const std::string text = unknown_name("key", word, kSchedules);
    CHECK_NOTHROW(std::ignore = nlohmann::json(text).dump());  // throws on ill-formed UTF-8
  }
}

TEST_CASE("the shortest text of a number reads back as the same number") {
  CHECK(shortest(0.1) == "0.1");
  CHECK(shortest(1.0) == "1");
  CHECK(shortest(-2.5) == "-2.5");
  for (const double value : {1.0 / 3.0, 1e300, 5e-324, 123456789.123, 2.0 / 7.0 * 1e-9,
                             std::numeric_limits<double>::max()}) {
    CAPTURE(value);
    CHECK(std::strtod(shortest(value).c_str(), nullptr) == value);
  }
}

TEST_CASE("a text splits at every separator, into one part more than there are separators") {
  CHECK(split("", ',') == std::vector<std::string_view>{""});
  CHECK(split("a", ',') == std::vector<std::string_view>{"a"});
  CHECK(split("a,,b,", ',') == std::vector<std::string_view>{"a", "", "b", ""});
}

}  // namespace
}  // namespace dipsim
