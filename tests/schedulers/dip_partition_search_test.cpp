// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/partition.hpp"
#include "schedulers/dip/partition_search.hpp"
#include "schedulers/dip/plan_replica.hpp"
#include "schedulers/dip/planner.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "tests/schedulers/dip_costs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace dipsim {

namespace {

using dip::ModulePlan;
using dip::Nanoseconds;
using dip::PartitionPlan;
using test::HeadedCosts;

/// Few sizes, so that the search is short.
DipOptions search_options(std::size_t jobs = 1) {
  DipOptions options;
  options.slice_sizes = {2, 4, 8};
  options.jobs = jobs;
  return options;
}

/// What a plan comes to on the representative batch, after a search of this many evaluations.
Nanoseconds measure(const HeadedCosts& costs, const Batch& batch, const PartitionPlan& plan,
                    std::size_t evaluations) {
  DipOptions options = search_options();
  options.evaluations = evaluations;
  const TaskGraph graph =
      costs.lower(dip::slice_batch(dip::place_modules(costs, plan), batch), batch);
  Nanoseconds slowest = 0;
  for (const dip::ReplicaGraph& replica : dip::replica_graphs(graph)) {
    slowest = std::max(slowest, dip::plan_by_descent(graph, replica, options).makespan);
  }
  return slowest;
}

}  // namespace

TEST_CASE("dip partition search: never worse than the rules, at times better") {
  std::size_t better = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    HeadedCosts costs = test::vision_language_costs(2);
    costs.last = static_cast<std::int64_t>(3 * seed);
    const Batch batch = test::vision_language_batch(seed, 4, 12);
    const DipOptions options = search_options();
    const PartitionPlan rules = dip::choose_partition(costs, batch, options);
    const PartitionPlan found = dip::search_partition(costs, batch, options);
    const Nanoseconds by_rules = measure(costs, batch, rules, 0);
    // It is the best of a few that are no worse than the rules' plan without evaluations, after
    // 200 for each.
    const Nanoseconds by_search = measure(costs, batch, found, 200);
    CHECK(by_search <= by_rules);
    better += by_search < measure(costs, batch, rules, 200) ? 1U : 0U;
  }
  CHECK(better > 0);
}

TEST_CASE("dip partition search: the plan does not depend on the number of threads") {
  const HeadedCosts costs = test::vision_language_costs(2);
  const Batch batch = test::vision_language_batch(7, 3, 10);
  const PartitionPlan alone = dip::search_partition(costs, batch, search_options(1));
  for (const std::size_t jobs : {2U, 5U}) {
    CAPTURE(jobs);
    const PartitionPlan found = dip::search_partition(costs, batch, search_options(jobs));
    CHECK(found.modules == alone.modules);
    CHECK(found.notes == alone.notes);
  }
}

TEST_CASE("dip partition search: it keeps to the slice sizes, the segments and the layers") {
  const HeadedCosts costs = test::vision_language_costs(2);
  const Batch batch = test::vision_language_batch(3, 3, 10);
  for (const int most : {1, 2}) {
    CAPTURE(most);
    DipOptions options = search_options();
    options.max_segments = most;
    const PartitionPlan found = dip::search_partition(costs, batch, options);
    REQUIRE(found.modules.size() == 2);
    for (std::size_t m = 0; m < 2; ++m) {
      const ModulePlan& module = found.modules[m];
      CHECK(module.segments >= 1);
      CHECK(module.segments <= most);
      const auto& layers = module.layers;
      if (!layers.empty()) {
        CHECK(layers.size() == static_cast<std::size_t>(2 * module.segments));
        CHECK(std::accumulate(layers.begin(), layers.end(), 0) ==
              costs.problem().modules[m].layers);
      }
    }
    CHECK(std::ranges::count(options.slice_sizes, found.modules[0].slice_instances) == 1);
    CHECK(found.modules[1].slice_instances == 1);  // a microbatch has one text
  }
}

TEST_CASE("dip partition search: without balance the layers stay even") {
  HeadedCosts costs = test::vision_language_costs(2);
  costs.last = 50;
  const Batch batch = test::vision_language_batch(4, 3, 10);
  DipOptions options = search_options();
  const auto unequal = [](const PartitionPlan& plan) {
    return std::ranges::any_of(plan.modules, [](const ModulePlan& module) {
      return !module.layers.empty() &&
             module.layers !=
                 dip::even_layers(std::accumulate(module.layers.begin(), module.layers.end(), 0),
                                  static_cast<int>(module.layers.size()));
    });
  };
  CHECK(unequal(dip::search_partition(costs, batch, options)));
  options.balance = false;
  CHECK_FALSE(unequal(dip::search_partition(costs, batch, options)));
}

TEST_CASE("dip partition search: without the partitioner it is whole microbatches in one segment") {
  DipOptions options = search_options();
  options.partitioner = false;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    HeadedCosts costs = test::vision_language_costs(2);
    costs.latency = Duration{0};
    const Batch batch = test::vision_language_batch(seed, 2, 10);
    for (const ModulePlan& module : dip::search_partition(costs, batch, options).modules) {
      CHECK(module.segments == 1);
      CHECK(module.slice_instances == 0);
    }
  }
}

TEST_CASE("dip partition search: where nothing fits it is the rules' plan") {
  class Small : public HeadedCosts {
   public:
    explicit Small(const HeadedCosts& costs) : HeadedCosts(costs), small_(costs.problem()) {
      for (Rank& rank : small_.ranks) {
        rank.memory_limit = Bytes{10};
      }
    }

    [[nodiscard]] const Problem& problem() const override { return small_; }

   private:
    Problem small_;
  };

  const Small costs(test::vision_language_costs(2));
  const Batch batch = test::vision_language_batch(6, 2, 6);
  const DipOptions options = search_options();
  const PartitionPlan found = dip::search_partition(costs, batch, options);
  CHECK(found.modules == dip::choose_partition(costs, batch, options).modules);
}

TEST_CASE("dip partition search: replicas of the same work are placed as one alone") {
  const HeadedCosts one = test::vision_language_costs(2);
  const HeadedCosts two = test::vision_language_costs(2, 2);
  const Batch batch = test::vision_language_batch(8, 3, 8);
  const DipOptions options = search_options();
  CHECK(dip::search_partition(two, test::repeated(batch, 2), options).modules ==
        dip::search_partition(one, batch, options).modules);
}

}  // namespace dipsim
