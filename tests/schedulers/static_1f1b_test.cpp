// SPDX-License-Identifier: Apache-2.0
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using namespace dipsim;

TEST_CASE("1f1b: p = 4, m = 5 warms up with p - 1 - i forwards, then alternates") {
  CHECK(test::order_text(test::plan("1f1b", test::pipeline(4, 5, 1, 1, 1, 1))) ==
        "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0B2 0B3 0B4\n"
        "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1B3 1B4\n"
        "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2B4\n"
        "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4\n");
}

TEST_CASE("1f1b: fewer microbatches than ranks shorten the warm-up") {
  CHECK(test::order_text(test::plan("1f1b", test::pipeline(4, 2, 1, 1, 1, 1))) ==
        "0F0 0F1 0B0 0B1\n"
        "1F0 1F1 1B0 1B1\n"
        "2F0 2F1 2B0 2B1\n"
        "3F0 3B0 3F1 3B1\n");
}

TEST_CASE("1f1b: makespan is (m + p - 1)(F + B) and rank i holds p - i microbatches") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 12);
    const int m = *rc::gen::inRange(1, 30);
    const int f = *rc::gen::inRange(1, 50);
    const int i = *rc::gen::inRange(0, 50);
    const int w = *rc::gen::inRange(0, 50);
    const auto plan = test::plan("1f1b", test::pipeline(p, m, 1, f, i, w));
    RC_ASSERT(test::makespan(plan) == std::int64_t{m + p - 1} * (f + i + w));
    if (i + w > 0) {
      std::vector<int> expected;
      for (int rank = 0; rank < p; ++rank) {
        expected.push_back(std::min(m, p - rank));
      }
      RC_ASSERT(test::in_flight(plan) == expected);
    }
  }));
}

}  // namespace
