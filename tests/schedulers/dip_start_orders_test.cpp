// SPDX-License-Identifier: Apache-2.0
// Where the searches over priorities start, and what they keep.
#include "schedulers/dip/elites.hpp"
#include "schedulers/dip/order.hpp"
#include "tests/schedulers/dip_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dipsim {

namespace {

using dip::GroupOrder;
using dip::Index;
using dip::ReplicaGraph;
using test::PipelineSpec;

}  // namespace

TEST_CASE("dip start orders: natural, lightest and heaviest first, light ends, and light outside") {
  // Microbatches 0 to 4 by time of all passes: 30, 10, 50, 20, 40; two groups each.
  PipelineSpec spec;
  spec.ranks = 1;
  spec.segments = {1, 1};
  const std::vector<std::int64_t> times = {30, 10, 50, 20, 40};
  for (int m = 0; m < 5; ++m) {
    const std::int64_t time = times[static_cast<std::size_t>(m)];
    // The fast strategy counts; the slow one would turn the order round.
    const Strategy slow = test::strategy(RecomputeMode::Full, 100, 1000 - 10 * time, 0);
    spec.works.push_back(test::work(m, 0, {test::keep(1, time / 2 - 1, 1), slow}));
    spec.works.push_back(test::work(m, 1, {test::keep(1, time / 2 - 1, 1), slow}));
  }
  const TaskGraph graph = test::pipeline(spec);
  const ReplicaGraph replica = dip::replica_graphs(graph).front();
  std::vector<std::vector<Index>> found;
  for (const GroupOrder& order : dip::start_orders(replica)) {
    CHECK(test::is_permutation_of_groups(replica, order.forward));
    CHECK(order.backward == order.forward);
    std::vector<Index> microbatches;
    for (std::size_t i = 0; i < order.forward.size(); i += 2) {
      CHECK(order.forward[i] % 2 == 0);  // whole, encoder first
      CHECK(order.forward[i + 1] == order.forward[i] + 1);
      microbatches.push_back(order.forward[i] / 2);
    }
    found.push_back(microbatches);
  }
  REQUIRE(!found.empty());
  CHECK(found.front() == std::vector<Index>{0, 1, 2, 3, 4});
  std::vector<std::vector<Index>> expected = {
      {0, 1, 2, 3, 4}, {1, 0, 2, 4, 3},  // natural; lightest first, second lightest last
      {1, 3, 0, 4, 2}, {1, 0, 4, 2, 3},  // lightest first
      {2, 4, 0, 3, 1}, {1, 2, 4, 0, 3},  // heaviest first
      {1, 0, 2, 4, 3}, {1, 0, 2, 4, 3},  // light at both ends: 10 30 50 40 20
  };
  std::ranges::sort(expected);
  std::ranges::sort(found);
  CHECK(found == expected);
}

TEST_CASE("dip start orders: one microbatch has only the natural one, four have light ends") {
  PipelineSpec spec;
  spec.segments = {1, 1};
  spec.works = {test::work(0, 0, {test::keep(1, 2, 1)}), test::work(0, 1, {test::keep(1, 2, 1)})};
  const TaskGraph graph = test::pipeline(spec);
  const ReplicaGraph replica = dip::replica_graphs(graph).front();
  REQUIRE(dip::start_orders(replica).size() == 1);
  CHECK(dip::start_orders(replica).front() == dip::natural_order(replica));
  // Four, by time 2, 1, 4 and 3: light at both ends is 1 3 4 2.
  spec.works = {test::work(0, 1, {test::keep(1, 1, 1)}), test::work(1, 1, {test::keep(1, 0, 1)}),
                test::work(2, 1, {test::keep(1, 3, 1)}), test::work(3, 1, {test::keep(1, 2, 1)})};
  const TaskGraph four = test::pipeline(spec);
  const auto orders = dip::start_orders(dip::replica_graphs(four).front());
  for (const GroupOrder& order : orders) {
    CHECK(test::is_permutation_of_groups(dip::replica_graphs(four).front(), order.forward));
  }
  CHECK(std::ranges::count(orders, std::vector<Index>{1, 3, 2, 0}, &GroupOrder::forward) > 0);
  CHECK(std::ranges::count(orders, std::vector<Index>{2, 3, 0, 1}, &GroupOrder::forward) == 1);
}

TEST_CASE("dip elites: the best few, which differ in their makespans and in what begins when") {
  PipelineSpec spec;
  spec.segments = {1, 1};
  for (int m = 0; m < 8; ++m) {
    for (const int module : {0, 1}) {
      spec.works.push_back(test::work(m, module, {test::keep(1, 2, 1)}));
    }
  }
  const TaskGraph graph = test::pipeline(spec);
  const ReplicaGraph replica = dip::replica_graphs(graph).front();
  // Microbatch `first` before all others; `late`: its second group last.
  const auto order = [&](Index first, bool late) {
    std::vector<Index> forward = {2 * first};
    for (Index group = 0; group < replica.groups.size(); ++group) {
      if (group / 2 != first || (group == 2 * first + 1 && !late)) {
        forward.push_back(group);
      }
    }
    if (late) {
      forward.push_back(2 * first + 1);
    }
    return GroupOrder{.forward = forward, .backward = forward};
  };
  dip::Elites elites(replica, 3);
  std::vector<std::size_t> levels;
  const auto offer = [&](dip::Nanoseconds makespan, std::size_t level, const GroupOrder& offered) {
    elites.offer({.order = offered, .way = {.level = level, .rule = {}}},
                 {.sequence = {}, .choice = {}, .makespan = makespan});
    levels.clear();
    for (const dip::Found& found : elites.all()) {
      levels.push_back(found.candidate.way.level);
    }
  };
  using Levels = std::vector<std::size_t>;
  offer(50, 0, order(0, false));
  offer(70, 1, order(1, false));
  offer(50, 2, order(2, false));  // equal makespan: the first stays
  CHECK(levels == Levels{0, 1});
  offer(60, 3, order(3, false));
  CHECK(levels == Levels{0, 3, 1});
  offer(80, 4, order(4, false));
  CHECK(levels == Levels{0, 3, 1});
  offer(40, 5, order(5, false));
  CHECK(levels == Levels{5, 0, 3});
  offer(70, 6, order(6, false));
  CHECK(levels == Levels{5, 0, 3});
  offer(55, 7, order(0, true));  // begins as 0 does, which is better
  CHECK(levels == Levels{5, 0, 3});
  offer(45, 8, order(3, true));  // takes the place of 3
  CHECK(levels == Levels{5, 8, 0});
  offer(42, 9, order(0, true));
  CHECK(levels == Levels{5, 9, 8});
}

}  // namespace dipsim
