// SPDX-License-Identifier: Apache-2.0
#include "sim/core/error.hpp"
#include "tests/schedulers/unequal_graphs.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using namespace dipsim;

/// A chunk holds one byte until W.
SyntheticSpec pipeline(int p, int m, int f, int i, int w) {
  SyntheticSpec spec = test::pipeline(p, m, 2, f, i, w);
  spec.activation = Bytes{1};
  spec.activation_for_weight = Bytes{1};
  return spec;
}

TEST_CASE("zb-v: chunk 0 flows from the first rank to the last, chunk 1 back") {
  const auto plan = test::plan("zb-v", pipeline(3, 2, 1, 1, 1));
  std::vector<RankId> ranks;
  ranks.reserve(plan.graph.placement.chunks.size());
  for (const Chunk& chunk : plan.graph.placement.chunks) {
    ranks.push_back(chunk.rank);
  }
  CHECK(ranks ==
        std::vector<RankId>{RankId{0}, RankId{1}, RankId{2}, RankId{2}, RankId{1}, RankId{0}});
}

TEST_CASE("zb-v: p = 2, m = 2") {
  CHECK(test::order_text(test::plan("zb-v", pipeline(2, 2, 1, 1, 1))) ==
        "0F0 0F1 3F0 3I0 3F1 3I1 0I0 3W0 0I1 3W1 0W0 0W1\n"
        "1F0 2F0 1F1 2F1 2I0 1I0 2I1 1I1 2W0 1W0 2W1 1W1\n");
}

// The last rank can't start before (p − 1)F and then has 2m(F + I + W) to do, so no order of this
// placement is shorter. In the paper's figure, too, ranks idle only before their first pass.
TEST_CASE("zb-v: with F = I = W = t per chunk and m >= p the makespan is (6m + p - 1)t") {
  for (int p = 1; p <= 9; ++p) {
    for (int m = p; m <= 2 * p + 5; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      CHECK(test::makespan(test::plan("zb-v", pipeline(p, m, 7, 7, 7))) == 7 * (6 * m + p - 1));
    }
  }
}

TEST_CASE("zb-v: no rank holds more than p microbatches, as rank 0 of 1F1B does") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 9);
    const int m = *rc::gen::inRange(1, 25);
    const auto plan =
        test::plan("zb-v", pipeline(p, m, *rc::gen::inRange(1, 20), *rc::gen::inRange(1, 20),
                                    *rc::gen::inRange(1, 20)));
    for (const Bytes peak : test::peaks(plan.graph, plan.schedule)) {
      RC_ASSERT(peak.count <= 2 * std::min(p, m));
    }
    for (const int chunks : test::in_flight(plan)) {
      RC_ASSERT(chunks <= 2 * std::min(p, m));
    }
  }));
}

TEST_CASE("zb-v: less room makes it longer, not wrong") {
  SyntheticSpec spec = pipeline(4, 8, 3, 3, 2);
  std::int64_t last = test::makespan(test::plan("zb-v", spec));
  for (const std::int64_t room : {6, 4, 2}) {
    CAPTURE(room);
    spec.memory_limit = Bytes{room};
    const auto plan = test::plan("zb-v", spec);
    CHECK(std::ranges::max(test::peaks(plan.graph, plan.schedule)).count <= room);
    CHECK(test::makespan(plan) > last);
    last = test::makespan(plan);
  }
}

TEST_CASE("zb-v: has two chunks per rank, whatever is asked") {
  CHECK(find_schedule("zb-v").default_chunks == 2);
  for (const int chunks : {1, 3}) {
    PlannerOptions options;
    options.chunks_per_rank = chunks;
    CHECK_THROWS_WITH_AS(find_schedule("zb-v").make(options),
                         doctest::Contains("allowed: 2; nearest legal: 2"), Error);
  }
}

}  // namespace
