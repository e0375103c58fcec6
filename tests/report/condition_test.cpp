// SPDX-License-Identifier: Apache-2.0
#include "report/condition.hpp"

#include "sim/core/error.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <string>

namespace dipsim {

namespace {

constexpr const char* kResult = R"({"work_bound_ms": 90.0, "winner": "dip", "schedules": [
  {"name": "1f1b", "iteration_time_ms": {"mean": 120.0}, "peak_memory_gib": [10.0, 7.5]},
  {"name": "dip", "iteration_time_ms": {"mean": 100.0}, "peak_memory_gib": [9.0, 9.5]}]})";

bool holds(const std::string& text) { return Condition(text).holds(kResult); }

std::string complaint(const std::string& text) {
  const Error error = test::error_of([&] { static_cast<void>(holds(text)); });
  CHECK(error.kind() == ErrorKind::Input);
  return error.what();
}

}  // namespace

TEST_CASE("a condition compares two expressions over the result") {
  CHECK(holds(R"("dip".iteration_time_ms.mean < "1f1b".iteration_time_ms.mean)"));
  CHECK_FALSE(holds(R"("dip".iteration_time_ms.mean > 0.95 * "1f1b".iteration_time_ms.mean)"));
  CHECK(holds(R"("dip".iteration_time_ms.mean>0.8*"1f1b".iteration_time_ms.mean)"));
  CHECK(holds(R"(work_bound_ms == 90)"));
  CHECK(holds(R"("1f1b".peak_memory_gib.1 == 7.5)"));
}

TEST_CASE("a condition follows the usual precedence and brackets") {
  CHECK(holds("1 + 2 * 3 == 7"));
  CHECK(holds("(1 + 2) * 3 == 9"));
  CHECK(holds("8 / 4 / 2 == 1"));
  CHECK(holds("10 - 3 - 2 == 5"));
  CHECK(holds("-2 * -3 == 6"));
  CHECK(holds("1 <= 1"));
  CHECK(holds("1 != 2"));
  CHECK_FALSE(holds("1 >= 2"));
}

TEST_CASE("a mistake is found before any result exists, with its column") {
  for (const char* text : {"", "1", "1 <", "1 < 2 < 3", "1 < (2", "1 < 1e400", "\"dip < 1",
                           "a. < 1", "1 ~ 2", "1 < 2 }"}) {
    CAPTURE(text);
    const Error error = test::error_of([&] { Condition{text}; });
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where().find("column") != std::string::npos);
  }
  CHECK(test::error_of([] { Condition(std::string(100'000, '(') + "1 < 2"); }).kind() ==
        ErrorKind::Input);
}

TEST_CASE("an unknown schedule or key is answered with the nearest one") {
  CHECK(complaint(R"("dop".iteration_time_ms.mean < 1)").find("\"dip\"") != std::string::npos);
  CHECK(complaint(R"("dip".iteration_time.mean < 1)").find("iteration_time_ms") !=
        std::string::npos);
  CHECK(complaint(R"("dip".iteration_time_ms < 1)").find("number") != std::string::npos);
  CHECK(complaint(R"("dip".peak_memory_gib.2 < 1)").find("0 to 1") != std::string::npos);
  CHECK(complaint("1 / (1 - 1) < 1").find("zero") != std::string::npos);
  CHECK(complaint("1 < nan").find("key") != std::string::npos);
  CHECK(complaint("winner < 1").find("number") != std::string::npos);
}

}  // namespace dipsim
