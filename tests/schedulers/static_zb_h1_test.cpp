// SPDX-License-Identifier: Apache-2.0
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace dipsim;

TEST_CASE("zb-h1: p = 3, m = 4 is warm-up, (F, I) pairs, triples, (I, W) pairs, then W") {
  CHECK(test::order_text(test::plan("zb-h1", test::pipeline(3, 4, 1, 1, 1, 1))) ==
        "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
        "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3\n"
        "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3\n");
}

TEST_CASE("zb-h1: bubble is (p - 1)(F + I - min(F, I, W)) whatever the times, from m = p on") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 13);
    const int m = p + *rc::gen::inRange(0, 25);
    const int f = *rc::gen::inRange(0, 60);
    const int i = *rc::gen::inRange(0, 60);
    const int w = *rc::gen::inRange(0, 60);
    const auto plan = test::plan("zb-h1", test::pipeline(p, m, 1, f, i, w));
    const std::int64_t bubble = std::int64_t{p - 1} * (f + i - std::min({f, i, w}));
    RC_ASSERT(test::makespan(plan) == std::int64_t{m} * (f + i + w) + bubble);
  }));
}

TEST_CASE("zb-h1: rank r ends after m(F + I + W) + r F + (p - 1 - r)(I + max(0, F - W))") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 10);
    const int m = p + *rc::gen::inRange(0, 15);
    const int f = *rc::gen::inRange(0, 60);
    const int i = *rc::gen::inRange(0, 60);
    const int w = *rc::gen::inRange(0, 60);
    const auto plan = test::plan("zb-h1", test::pipeline(p, m, 1, f, i, w));
    const auto spans = test::timeline(plan).spans;
    for (int r = 0; r < p; ++r) {
      const TaskId last = plan.schedule.compute[static_cast<std::size_t>(r)].back().task;
      RC_ASSERT((spans[last.row()].end - kStart).count() ==
                std::int64_t{m} * (f + i + w) + r * f + (p - 1 - r) * (i + std::max(0, f - w)));
    }
  }));
}

TEST_CASE("zb-h1: every rank holds p microbatches from F to W, as rank 0 of 1F1B does") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 10);
    const int m = *rc::gen::inRange(1, 30);
    const int f = *rc::gen::inRange(1, 60);
    const int i = *rc::gen::inRange(1, 60);
    const int w = *rc::gen::inRange(1, 60);
    const auto plan = test::plan("zb-h1", test::pipeline(p, m, 1, f, i, w));
    RC_ASSERT(test::in_flight(plan) ==
              std::vector<int>(static_cast<std::size_t>(p), std::min(p, m)));
  }));
}

TEST_CASE("zb-h1: fewer microbatches than ranks still give a whole order") {
  CHECK(test::order_text(test::plan("zb-h1", test::pipeline(4, 2, 1, 1, 1, 1))) ==
        "0F0 0F1 0I0 0W0 0I1 0W1\n"
        "1F0 1F1 1I0 1I1 1W0 1W1\n"
        "2F0 2F1 2I0 2I1 2W0 2W1\n"
        "3F0 3I0 3F1 3I1 3W0 3W1\n");
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 10);
    const int m = *rc::gen::inRange(1, 10);
    // Never slower than without the split: the same critical path with W out of it.
    RC_ASSERT(test::makespan(test::plan("zb-h1", test::pipeline(p, m, 1, 3, 3, 2))) <=
              test::makespan(test::plan("1f1b", test::pipeline(p, m, 1, 3, 3, 2))));
  }));
}

}  // namespace
