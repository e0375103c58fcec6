// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/orders.hpp"
#include "sim/core/error.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

TEST_CASE("megatron: one chunk per rank is 1f1b, several are interleaved") {
  CHECK(test::order_text(test::plan("megatron", test::pipeline(3, 5, 1, 1, 1, 1))) ==
        test::order_text(test::plan("1f1b", test::pipeline(3, 5, 1, 1, 1, 1))));
  CHECK(test::order_text(test::plan("megatron", test::pipeline(3, 6, 2, 1, 1, 1))) ==
        test::order_text(test::plan("interleaved", test::pipeline(3, 6, 2, 1, 1, 1))));
}

TEST_CASE("megatron: several chunks need whole groups of microbatches, one does not") {
  CHECK_NOTHROW((void)test::plan("megatron", test::pipeline(4, 6, 1, 1, 1, 1)));
  CHECK_THROWS_WITH_AS((void)test::plan("megatron", test::pipeline(4, 7, 2, 1, 1, 1)),
                       doctest::Contains("7 per replica with schedule megatron on 4 ranks; "
                                         "allowed: multiples of 4"),
                       Error);
}

TEST_CASE("megatron: chunks are balanced by parameters, whatever the passes take") {
  // 6 · 1 and 3 · 2 parameters: 6 | 6; by time 6 · 6 and 3 · 60 would be cut inside the second.
  const test::FakeCosts costs(
      {{"vit", 6, 2, 2, 2, true, {}, 1.0}, {"lm", 3, 20, 20, 20, true, {ModuleId{0}}, 2.0}}, 2);
  const auto placement =
      find_schedule("megatron").make({})->place(costs, test::fake_batch({{{1}, {1}}}));
  CHECK(std::ranges::find(placement.notes, Note{"layers per stage", "6 3"}) !=
        placement.notes.end());
}

TEST_CASE("megatron tries powers of two of chunks as long as every chunk has a layer") {
  const auto choices = [](int layers, int ranks, int asked = 0) {
    PlannerOptions options;
    options.chunks_per_rank = asked;
    std::vector<int> chunks;
    for (const PlannerOptions& one : megatron_alternatives(options, layers, ranks)) {
      chunks.push_back(one.chunks_per_rank);
    }
    return chunks;
  };
  using Choices = std::vector<int>;
  CHECK(choices(1, 4) == Choices{1});  // refused later, by the partition
  CHECK(choices(7, 4) == Choices{1});
  CHECK(choices(8, 4) == Choices{1, 2});
  CHECK(choices(15, 4) == Choices{1, 2});
  CHECK(choices(95, 4) == Choices{1, 2, 4, 8, 16});
  CHECK(choices(95, 4, 3) == Choices{3});
}

}  // namespace
