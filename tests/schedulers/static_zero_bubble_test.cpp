// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/arrival_order.hpp"
#include "schedulers/static/pipeline_memory.hpp"
#include "schedulers/static/zero_bubble.hpp"
#include "tests/schedulers/unequal_graphs.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

/// `held` bytes from F to I, `kept` of them on to W.
SyntheticSpec pipeline(int p, int m, int f, int i, int w, std::int64_t held, std::int64_t kept) {
  SyntheticSpec spec = test::pipeline(p, m, 1, f, i, w);
  spec.activation = Bytes{held};
  spec.activation_for_weight = Bytes{kept};
  return spec;
}

std::int64_t highest_peak(const test::StaticPlan& plan) {
  return std::ranges::max(test::peaks(plan.graph, plan.schedule)).count;
}

// Case W6 of docs/metrics.md: times and memory of a published profile. The makespan is the time
// from the first start to the last end, over all ranks. The best of the authors' eight heuristic
// candidates, run with the same limits, has the makespans below.
struct Published {
  const char* schedule;
  int m;
  std::int64_t makespan;
  std::int64_t limit;
};

TEST_CASE("zb-1p and zb-2p reach the authors' makespans at equal memory") {
  constexpr int kForwardBytes = 3720;
  for (const Published& want :
       {Published{"zb-1p", 24, 2'181'931, 8}, Published{"zb-1p", 32, 2'809'811, 8},
        Published{"zb-1p", 48, 4'065'571, 8}, Published{"zb-1p", 64, 5'321'331, 8},
        Published{"zb-2p", 24, 2'095'852, 16}, Published{"zb-2p", 32, 2'723'732, 16},
        Published{"zb-2p", 48, 3'979'492, 16}, Published{"zb-2p", 64, 5'235'252, 16}}) {
    CAPTURE(want.schedule);
    CAPTURE(want.m);
    SyntheticSpec spec = pipeline(8, want.m, 29'850, 29'767, 18'868, kForwardBytes, 1672);
    spec.p2p_latency = Duration{466};
    const auto plan = test::plan(want.schedule, spec);
    CHECK(test::makespan(plan) <= want.makespan);
    CHECK(highest_peak(plan) <= want.limit * kForwardBytes);
  }
}

TEST_CASE("zb-1p: p = 3, m = 4 with F = I = W is ZB-H1") {
  const SyntheticSpec spec = pipeline(3, 4, 1, 1, 1, 2, 1);
  CHECK(test::order_text(test::plan("zb-1p", spec)) ==
        "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
        "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3\n"
        "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3\n");
}

TEST_CASE("zb-2p: p = 3, m = 6 with F = I = W idles only until the first microbatch comes") {
  const SyntheticSpec spec = pipeline(3, 6, 1, 1, 1, 2, 1);
  CHECK(test::order_text(test::plan("zb-2p", spec)) ==
        "0F0 0F1 0F2 0F3 0F4 0I0 0F5 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 0I5 0W5\n"
        "1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1F5 1I3 1W0 1I4 1W1 1I5 1W2 1W3 1W4 1W5\n"
        "2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2F5 2I5 2W0 2W1 2W2 2W3 2W4 2W5\n");
}

// The last rank can't start before (p − 1)F and then has m(F + I + W) to do.
TEST_CASE("zb-2p: with F = I = W and m >= p no order is shorter") {
  for (int p = 1; p <= 9; ++p) {
    for (int m = p; m <= 2 * p + 3; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      const auto plan = test::plan("zb-2p", pipeline(p, m, 7, 7, 7, 2, 1));
      CHECK(test::makespan(plan) == 7 * (3 * m + p - 1));
    }
  }
}

TEST_CASE("zb-1p is never longer than ZB-H1, zb-2p never longer than zb-1p, on equal stages") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 9);
    const int m = p + *rc::gen::inRange(0, 20);
    const SyntheticSpec spec = pipeline(p, m, *rc::gen::inRange(1, 21), *rc::gen::inRange(1, 21),
                                        *rc::gen::inRange(1, 21), 10, *rc::gen::inRange(0, 11));
    const auto once = test::plan("zb-1p", spec);
    const auto twice = test::plan("zb-2p", spec);
    RC_ASSERT(test::makespan(once) <= test::makespan(test::plan("zb-h1", spec)));
    RC_ASSERT(test::makespan(twice) <= test::makespan(once));
    RC_ASSERT(highest_peak(once) <= 10 * p);
    RC_ASSERT(highest_peak(twice) <= 20 * p);
  }));
}

TEST_CASE("zb-2p: a rank with room for p microbatches gets the order of zb-1p") {
  SyntheticSpec spec = pipeline(5, 14, 30, 31, 20, 10, 4);
  const auto once = test::plan("zb-1p", spec);
  CHECK(test::makespan(test::plan("zb-2p", spec)) < test::makespan(once));
  spec.memory_limit = Bytes{50};
  CHECK(test::order_text(test::plan("zb-2p", spec)) == test::order_text(once));
}

TEST_CASE("zb-1p: less room than p microbatches makes it longer, not wrong") {
  SyntheticSpec spec = pipeline(4, 9, 3, 3, 2, 10, 4);
  std::int64_t last = test::makespan(test::plan("zb-1p", spec));
  for (const std::int64_t room : {30, 20, 10}) {
    CAPTURE(room);
    spec.memory_limit = Bytes{room};
    const auto plan = test::plan("zb-1p", spec);
    CHECK(highest_peak(plan) <= room);
    CHECK(test::makespan(plan) > last);
    last = test::makespan(plan);
  }
  CHECK(last == 9 * (4 * (3 + 3) + 2));  // one after the other
}

PipelineInstance small_instance() {
  PipelineInstance instance;
  instance.shape = {.ranks = 2, .microbatches = 4, .chunks = 1};
  instance.stages = {{.rank = 0}, {.rank = 1}};
  for (const int size : {5, 1, 2, 9, 1, 1, 1, 1}) {
    instance.costs.push_back({.held = Bytes{size}});
  }
  instance.costs[2].during_backward = Bytes{3};
  instance.costs[6].kept = Bytes{40};
  instance.costs[6].during_weight = Bytes{4};
  instance.stages[1].has_weight = true;
  instance.room = {Bytes{100}, Bytes{100}};
  instance.ranks = {RankId{0}, RankId{1}};
  return instance;
}

TEST_CASE("memory of 1F1B: the largest p successive microbatches, and what one takes on top") {
  PipelineInstance instance = small_instance();
  // Rank 0: windows 5+1, 1+2, 2+9; a pass takes up to 3. Rank 1: 1+1; 40 from I to W, where 1 was
  // before, and 4 during W.
  CHECK(one_f_one_b_memory(instance, 1) == std::vector<Bytes>{Bytes{11 + 3}, Bytes{2 + 43}});
  CHECK(one_f_one_b_memory(instance, 2) == std::vector<Bytes>{Bytes{22 + 3}, Bytes{4 + 43}});
  instance.room = {Bytes{20}, Bytes{43}};
  CHECK(one_f_one_b_memory(instance, 2) == std::vector<Bytes>{Bytes{20}, Bytes{43}});
}

TEST_CASE(
    "zero bubble: every candidate is a whole order, timed as evaluated, and the shortest is "
    "taken") {
  CHECK(rc::check([] {
    SyntheticSpec spec;
    spec.ranks = *rc::gen::inRange(1, 6);
    spec.microbatches = *rc::gen::inRange(1, 15);
    test::Unplanned made = test::unplanned("zb-2p", *make_synthetic(spec), synthetic_batch(spec));
    test::make_unequal(made.graph, *rc::gen::arbitrary<std::uint64_t>());
    test::limit_memory(made.graph, *rc::gen::element<std::int64_t>(100, 200, 500));
    const PipelineInstance instance = test::instance_of(made.graph);
    OrderBuilder builder(instance, instance.room);
    Duration shortest = OrderBuilder::kNever;
    const auto check = [&](const std::vector<std::vector<Step>>& steps) {
      const Schedule schedule = test::schedule_of(made.graph, steps);
      validate(made.graph, schedule);
      return OrderEvaluator(made.graph).evaluate(schedule).makespan;
    };
    for (unsigned number = 0; number < 12; ++number) {
      builder.clear();
      if (number < 8) {
        build_zero_bubble(builder, {.gap_before_first_backward = (number & 4U) != 0,
                                    .backward_first = (number & 2U) != 0,
                                    .fill_small_gaps = (number & 1U) != 0});
      } else {
        build_by_arrival(builder,
                         {.alternate = (number & 2U) != 0, .fill_small_gaps = (number & 1U) != 0});
      }
      RC_ASSERT(check(builder.steps()) == builder.makespan());
      shortest = std::min(shortest, builder.makespan());
    }
    RC_ASSERT(check(search_zero_bubble(instance, instance.room)) == shortest);
  }));
}

TEST_CASE("zero bubble: forwards that a large microbatch has held back are caught up on") {
  PipelineInstance instance;
  instance.shape = {.ranks = 2, .microbatches = 7, .chunks = 1};
  instance.backward_op = Op::I;
  instance.stages = {{.rank = 0, .has_weight = true}, {.rank = 1, .has_weight = true}};
  instance.costs.assign(14, {.forward = Duration{10},
                             .backward = Duration{10},
                             .weight = Duration{10},
                             .held = Bytes{10}});
  instance.costs[3].held = Bytes{25};
  instance.ranks = {RankId{0}, RankId{1}};
  const std::vector<Bytes> limits = {Bytes{30}, Bytes{30}};
  OrderBuilder builder(instance, limits);
  build_zero_bubble(builder, {});
  std::string rank_0;
  for (const Step& step : builder.steps().front()) {
    rank_0 += std::string(name_of(step.op)) + std::to_string(step.microbatch) + " ";
  }
  // In its round, microbatch 3 fits once 0, 1 and 2 are done, and then 4 does not until 3 is done.
  CHECK(rank_0 == "F0 F1 F2 I0 W0 I1 W1 I2 F3 W2 I3 F4 F5 F6 W3 I4 W4 I5 W5 I6 W6 ");
}

TEST_CASE("orders by arrival: p = 2, m = 3 with F = I = W leaves no gap after the first pass") {
  const SyntheticSpec spec = pipeline(2, 3, 1, 1, 1, 2, 1);
  const test::Unplanned made =
      test::unplanned("zb-2p", *make_synthetic(spec), synthetic_batch(spec));
  const PipelineInstance instance = test::instance_of(made.graph);
  OrderBuilder builder(instance, instance.room);
  for (const bool alternate : {true, false}) {
    builder.clear();
    build_by_arrival(builder, {.alternate = alternate});
    CHECK(test::order_text({made.graph, test::schedule_of(made.graph, builder.steps())}) ==
          "0F0 0F1 0F2 0I0 0W0 0I1 0W1 0I2 0W2\n"
          "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2\n");
    CHECK(builder.makespan() == Duration{3 * 3 + 1});
  }
}

}  // namespace
