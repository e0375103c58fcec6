// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/dynapipe_orders.hpp"
#include "tests/schedulers/unequal_graphs.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using namespace dipsim;

TEST_CASE("dynapipe: p = 3, m = 6 runs forwards as far ahead as cycles let it") {
  CHECK(test::order_text(test::plan("dynapipe", test::pipeline(3, 6, 1, 1, 1, 1))) ==
        "0F0 0F1 0F2 0F3 0F4 0B0 0F5 0B1 0B2 0B3 0B4 0B5\n"
        "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1B4 1B5\n"
        "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5\n");
}

TEST_CASE("dynapipe: on equal stages and microbatches it takes (m + p - 1)(F + B), as 1F1B") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 9);
    const int m = *rc::gen::inRange(1, 25);
    const int f = *rc::gen::inRange(1, 50);
    const int i = *rc::gen::inRange(1, 50);
    const int w = *rc::gen::inRange(1, 50);
    const auto plan = test::plan("dynapipe", test::pipeline(p, m, 1, f, i, w));
    RC_ASSERT(test::makespan(plan) == std::int64_t{m + p - 1} * (f + i + w));
    for (int rank = 0; rank < p; ++rank) {
      RC_ASSERT(test::in_flight(plan)[static_cast<std::size_t>(rank)] ==
                std::min(2 * (p - 1 - rank) + 1, m));
    }
  }));
}

TEST_CASE("dynapipe: forwards ahead hide transfers that 1F1B waits for") {
  SyntheticSpec spec = test::pipeline(4, 12, 1, 10, 10, 10);
  spec.p2p_latency = Duration{5};
  const std::int64_t dynapipe = test::makespan(test::plan("dynapipe", spec));
  CHECK(dynapipe < test::makespan(test::plan("1f1b", spec)));
  // The pipeline fills and empties once, and the last rank never waits.
  CHECK(dynapipe == (12 + 4 - 1) * 30 + 2 * 3 * 5);
}

TEST_CASE("dynapipe: a forward that does not fit is left for a later cycle") {
  SyntheticSpec spec = test::pipeline(3, 8, 1, 1, 1, 1);
  spec.activation = Bytes{10};
  for (const int held : {4, 2, 1}) {
    CAPTURE(held);
    spec.memory_limit = Bytes{10 * held + 9};
    const auto in_flight = test::in_flight(test::plan("dynapipe", spec));
    CHECK(in_flight == std::vector<int>{held, std::min(held, 3), 1});
  }
}

// Up to four microbatches, all orders are tried, so that it does not matter which was given.
TEST_CASE("dynapipe: the order in which few microbatches come does not matter") {
  const test::FakeCosts costs(
      {{"vit", 2, 1, 1, 1, true, {}}, {"lm", 2, 2, 2, 2, true, {ModuleId{0}}}}, 2);
  std::vector<test::FakeMicrobatch> batch = {{{9}, {1}}, {{1}, {7}}, {{4}, {4}}, {{2}, {1}}};
  const std::int64_t first = test::makespan(test::plan("dynapipe", costs, test::fake_batch(batch)));
  while (std::ranges::next_permutation(batch).found) {
    CHECK(test::makespan(test::plan("dynapipe", costs, test::fake_batch(batch))) == first);
  }
  CHECK(first < test::makespan(test::plan("1f1b", costs, test::fake_batch(batch))));
}

MicrobatchTimes times(int first, int last) {
  return {Duration{first}, Duration{last}, Duration{2 * first}, Duration{2 * last}};
}

TEST_CASE("dynapipe: groups are microbatches of similar times") {
  const std::vector<MicrobatchTimes> of_microbatches = {times(100, 1), times(1, 1),   times(1, 99),
                                                        times(98, 2),  times(2, 100), times(2, 2)};
  CHECK(group_microbatches(of_microbatches, 3) ==
        std::vector<std::vector<int>>{{1, 5}, {0, 3}, {2, 4}});
  CHECK(group_microbatches(of_microbatches, 1) ==
        std::vector<std::vector<int>>{{0, 1, 2, 3, 4, 5}});
  const std::vector<MicrobatchTimes> equal(5, times(3, 3));
  CHECK(group_microbatches(equal, 4) == std::vector<std::vector<int>>{{0, 1, 2, 3, 4}});
}

PipelineInstance unequal(int microbatches) {
  PipelineInstance instance;
  instance.shape = {.ranks = 1, .microbatches = microbatches, .chunks = 1};
  instance.stages = {{}};
  for (int m = 0; m < microbatches; ++m) {
    const Duration time{m % 4 * 1000 + m};
    instance.costs.push_back({.forward = time, .backward = time});
  }
  return instance;
}

TEST_CASE("dynapipe: the given order, and all permutations of groups or of few microbatches") {
  CHECK(microbatch_orders(unequal(1)) == std::vector<std::vector<int>>{{0}});
  CHECK(microbatch_orders(unequal(3)).size() == 6);
  CHECK(microbatch_orders(unequal(4)).size() == 24);
  CHECK(microbatch_orders(unequal(20)).size() == 1 + 24);  // four groups
  CHECK(microbatch_orders(unequal(24)).size() == 1 + 6);   // three
  for (const int m : {1, 3, 4, 20, 24}) {
    CAPTURE(m);
    const auto orders = microbatch_orders(unequal(m));
    std::vector<int> given(static_cast<std::size_t>(m));
    std::iota(given.begin(), given.end(), 0);
    CHECK(orders.front() == given);
    for (std::vector<int> order : orders) {
      std::ranges::sort(order);
      CHECK(order == given);
    }
  }
}

}  // namespace
