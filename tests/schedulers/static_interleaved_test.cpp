// SPDX-License-Identifier: Apache-2.0
#include "sim/core/error.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>

namespace {

using namespace dipsim;

// Virtual order of forwards for p = 2, v = 2: (chunk, microbatch) = (0,0) (0,1) (1,0) (1,1) (0,2)
// (0,3) (1,2) (1,3); backwards with the chunks swapped. Warm-up: 2 + 2 on rank 0, 2 on rank 1.
// Stage = chunk · p + rank.
TEST_CASE("interleaved: p = 2, v = 2, m = 4 follows Megatron's table") {
  CHECK(test::order_text(test::plan("interleaved", test::pipeline(2, 4, 2, 1, 1, 1))) ==
        "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
        "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3\n");
}

// Megatron-LM issues 169 and 675 ask why warm-up counts double: 2(p - 1 - i) + (v - 1)p.
TEST_CASE("interleaved: p = 3, v = 2, m = 3 starts with as many forwards as there are") {
  CHECK(test::order_text(test::plan("interleaved", test::pipeline(3, 3, 2, 1, 1, 1))) ==
        "0F0 0F1 0F2 3F0 3F1 3F2 3B0 3B1 3B2 0B0 0B1 0B2\n"
        "1F0 1F1 1F2 4F0 4F1 4F2 4B0 4B1 4B2 1B0 1B1 1B2\n"
        "2F0 2F1 2F2 5F0 5B0 5F1 5B1 5F2 5B2 2B0 2B1 2B2\n");
}

TEST_CASE(
    "interleaved: makespan is m(F + B) + (p - 1)(F + B) / v, F and B of all chunks together") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 9);
    const int v = *rc::gen::inRange(2, 6);
    const int m = p * *rc::gen::inRange(1, 5);
    const int f = *rc::gen::inRange(0, 50);  // per chunk, as i and w
    const int i = *rc::gen::inRange(0, 50);
    const int w = *rc::gen::inRange(0, 50);
    const auto plan = test::plan("interleaved", test::pipeline(p, m, v, f, i, w));
    RC_ASSERT(test::makespan(plan) == std::int64_t{m * v + p - 1} * (f + i + w));
  }));
}

// arXiv 2104.04473 §2.2: with p(1 + (p - 1)/(p·v)) microbatches' worth of activations on rank 0,
// i.e. p·v + p - 1 chunks: the warm-up and the first F of the steady state.
TEST_CASE("interleaved: rank i holds the chunks of its warm-up and one more") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 7);
    const int v = *rc::gen::inRange(2, 5);
    const int m = p * *rc::gen::inRange(2, 5);
    const auto plan = test::plan("interleaved", test::pipeline(p, m, v, 3, 2, 4));
    const auto held = test::in_flight(plan);
    for (int rank = 0; rank < p; ++rank) {
      const int warmup = 2 * (p - 1 - rank) + (v - 1) * p;
      RC_ASSERT(held[static_cast<std::size_t>(rank)] == std::min(warmup + 1, m * v));
    }
  }));
}

TEST_CASE("interleaved: microbatches that are no multiple of the ranks are refused") {
  CHECK_THROWS_WITH_AS(test::plan("interleaved", test::pipeline(4, 10, 2, 1, 1, 1)),
                       "microbatches: 10 per replica with schedule interleaved on 4 ranks; "
                       "allowed: multiples of 4 (Megatron-LM rejects a last group of fewer "
                       "microbatches than ranks); nearest legal: 8",
                       Error);
  CHECK_THROWS_WITH_AS(test::plan("interleaved", test::pipeline(4, 11, 2, 1, 1, 1)),
                       doctest::Contains("nearest legal: 12"), Error);
  CHECK_THROWS_WITH_AS(test::plan("interleaved", test::pipeline(4, 1, 2, 1, 1, 1)),
                       doctest::Contains("nearest legal: 4"), Error);
}

TEST_CASE("interleaved: one chunk per rank is refused") {
  CHECK_THROWS_WITH_AS(test::plan("interleaved", test::pipeline(4, 8, 1, 1, 1, 1)),
                       "chunks per rank: 1 with schedule interleaved; allowed: 2 to 10000; nearest "
                       "legal: 2",
                       Error);
}

}  // namespace
