// SPDX-License-Identifier: Apache-2.0
// The exact solver against every order of tiny graphs.
#include "schedulers/exact/exact.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/schedulers/exact_oracle.hpp"
#include "tests/support/random_case.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dipsim {

namespace {

using test::AllOrders;
using test::TinyPipeline;
using test::TinyShape;

constexpr std::size_t kMostOrders = 6'000;

/// The makespan of the solver; none where it says that nothing fits.
std::optional<Duration> solved(const TaskGraph& graph, const std::vector<StrategyId>& chosen) {
  try {
    const ExactResult result = solve_exact(graph, chosen);
    CHECK(result.proven);
    CHECK(result.lower_bound == result.makespan);
    CHECK_NOTHROW(validate(graph, result.schedule));
    CHECK(result.schedule.chosen == chosen);
    const Timeline timeline = OrderEvaluator(graph).evaluate(result.schedule);
    CHECK(timeline.makespan == result.makespan);
    for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
      CHECK(timeline.memory[r].peak <= graph.placement.ranks[r].memory_limit);
    }
    return result.makespan;
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::Infeasible);
    return std::nullopt;
  }
}

struct Tally {
  int compared = 0;
  int infeasible = 0;
};

void compare(const TaskGraph& graph, const std::vector<StrategyId>& chosen, Tally& tally) {
  AllOrders orders(graph, chosen);
  if (orders.count(kMostOrders) > kMostOrders) {
    return;
  }
  const std::optional<Duration> expected = orders.best();
  CHECK(solved(graph, chosen) == expected);
  ++tally.compared;
  tally.infeasible += expected ? 0 : 1;
}

Tally compare_pipelines(const TinyShape& shape, std::uint64_t seeds) {
  Tally tally;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    const TaskGraph graph = TinyPipeline(shape, seed).make();
    compare(graph, test::first_strategies(graph), tally);
  }
  MESSAGE(tally.compared << " compared, " << tally.infeasible << " do not fit");
  return tally;
}

}  // namespace

TEST_CASE("exact solver: no order of a tiny pipeline beats it where memory is plentiful") {
  CHECK(compare_pipelines({}, 400).compared > 200);
}

TEST_CASE("exact solver: no order of a tiny pipeline beats it where passes come in all kinds") {
  CHECK(compare_pipelines({.mixed_pairs = true}, 300).compared > 150);
}

TEST_CASE("exact solver: no order of a tiny pipeline beats it where memory is scarce") {
  const Tally tally = compare_pipelines({.limited = true}, 500);
  CHECK(tally.compared - tally.infeasible > 100);
  CHECK(tally.infeasible > 20);
}

TEST_CASE("exact solver: no order with split backwards beats it where memory is scarce") {
  const Tally tally = compare_pipelines({.limited = true, .split_only = true}, 500);
  CHECK(tally.compared - tally.infeasible > 80);
}

TEST_CASE("exact solver: no order of a mixed pipeline beats it where memory is scarce") {
  const Tally tally = compare_pipelines({.limited = true, .mixed_pairs = true}, 500);
  CHECK(tally.compared - tally.infeasible > 80);
}

TEST_CASE("exact solver: no order of a random graph beats it") {
  Tally tally;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    test::RandomCase made = test::random_case(
        {.ranks = 1 + seed % 3, .pairs = 3 + seed % 3, .speeds = true, .epilogue = true}, seed);
    for (Rank& rank : made.graph.placement.ranks) {
      rank.memory_limit = Bytes{1'000'000};
    }
    compare(made.graph, made.schedule.chosen, tally);
  }
  MESSAGE(tally.compared << " compared");
  CHECK(tally.compared > 200);
}

}  // namespace dipsim
