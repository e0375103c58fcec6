// SPDX-License-Identifier: Apache-2.0
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <vector>

namespace {

using namespace dipsim;

TEST_CASE("gpipe: p = 3, m = 4 runs all forwards, then all backwards in the same order") {
  CHECK(test::order_text(test::plan("gpipe", test::pipeline(3, 4, 1, 1, 1, 1))) ==
        "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n"
        "1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3\n"
        "2F0 2F1 2F2 2F3 2B0 2B1 2B2 2B3\n");
}

TEST_CASE("gpipe: makespan is (m + p - 1)(F + B) and every rank holds all m microbatches") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 12);
    const int m = *rc::gen::inRange(1, 20);
    const int f = *rc::gen::inRange(0, 50);
    const int i = *rc::gen::inRange(0, 50);
    const int w = *rc::gen::inRange(1, 50);
    const auto plan = test::plan("gpipe", test::pipeline(p, m, 1, f, i, w));
    RC_ASSERT(test::makespan(plan) == std::int64_t{m + p - 1} * (f + i + w));
    if (f > 0) {
      RC_ASSERT(test::in_flight(plan) == std::vector<int>(static_cast<std::size_t>(p), m));
    }
  }));
}

}  // namespace
