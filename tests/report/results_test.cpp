// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/results.hpp"

#include "sim/core/error.hpp"
#include "tests/report/example.hpp"

#include <doctest/doctest.h>

using namespace dipsim;
using doctest::Approx;

TEST_CASE("summary: times are mean, least and largest over the iterations") {
  const ScheduleSummary slow = summarize(test::small_comparison(), 0);
  CHECK(slow.makespan_ms.mean == 200.0);
  CHECK(slow.makespan_ms.min == 100.0);
  CHECK(slow.makespan_ms.max == 300.0);
  CHECK(slow.iteration_time_ms.mean == 210.0);
  CHECK(slow.iteration_time_ms.min == 110.0);
  CHECK(slow.iteration_time_ms.max == 310.0);
  CHECK(slow.lower_bound_ms == 160.0);
}

TEST_CASE("summary: ratios weigh long iterations more") {
  // Idle 50 of 200 ms and 100 of 600 ms: 150 / 800, not the mean 0.2083 of 0.25 and 0.1667.
  const ScheduleSummary slow = summarize(test::small_comparison(), 0);
  CHECK(slow.bubble_ratio == Approx(150.0 / 800.0).epsilon(1e-12));
  CHECK(slow.bubble_overhead == Approx(150.0 / 650.0).epsilon(1e-12));
  CHECK(slow.mfu == Approx((0.5 * 110.0 + 0.3 * 310.0) / 420.0).epsilon(1e-12));
  CHECK(slow.gap_to_bound == Approx(400.0 / 320.0 - 1.0).epsilon(1e-12));
}

TEST_CASE("summary: idle time is a mean per iteration, memory the largest per rank") {
  const ScheduleSummary slow = summarize(test::small_comparison(), 0);
  CHECK(slow.idle.pipeline == test::ms(70));
  CHECK(slow.idle.transfer == test::ms(5));
  CHECK(slow.idle.total() == test::ms(75));
  CHECK(slow.peak_memory_gib == std::vector<double>{3.0, 4.0});
}

TEST_CASE("summary: throughput refers to the first schedule") {
  const Comparison comparison = test::small_comparison();
  CHECK(summarize(comparison, 0).throughput_ratio == 1.0);
  CHECK(summarize(comparison, 1).throughput_ratio == Approx(210.0 / 170.0).epsilon(1e-12));
}

TEST_CASE("summary: a schedule fits when it fits on every iteration") {
  const Comparison comparison = test::small_comparison();
  CHECK(summarize(comparison, 1).fits);
  CHECK_FALSE(summarize(comparison, 2).fits);
}

TEST_CASE("summary: nanoseconds are not lost in milliseconds") {
  Comparison comparison = test::small_comparison();
  comparison.schedules.resize(1);
  comparison.schedules[0].iterations.resize(1);
  comparison.schedules[0].iterations[0].makespan = Duration{1'234'567};
  CHECK(summarize(comparison, 0).makespan_ms.mean == 1.234567);
}

TEST_CASE("summary: no iterations, no busy time and no bound give zeros, not NaN") {
  Comparison comparison;
  comparison.schedules.resize(1);
  const ScheduleSummary none = summarize(comparison, 0);
  CHECK(none.iteration_time_ms.mean == 0.0);
  CHECK(none.throughput_ratio == 0.0);
  CHECK(none.mfu == 0.0);
  CHECK_FALSE(none.fits);
  comparison.schedules[0].iterations.resize(1);
  const ScheduleSummary zeros = summarize(comparison, 0);
  CHECK(zeros.bubble_ratio == 0.0);
  CHECK(zeros.bubble_overhead == 0.0);
  CHECK(zeros.gap_to_bound == 0.0);
}

TEST_CASE("summary: schedules that ran different iterations are never compared") {
  Comparison comparison = test::small_comparison();
  comparison.schedules[1].iterations.pop_back();
  CHECK_THROWS_AS(summarize(comparison, 0), Error);
  CHECK_THROWS_AS(work_bound_ms(comparison), Error);
}

TEST_CASE("winner: the fastest on average among those that fit") {
  Comparison comparison = test::small_comparison();
  CHECK(winner(comparison) == "fast");  // huge is faster but does not fit
  comparison.schedules[2].iterations[1].fits = true;
  CHECK(winner(comparison) == "huge");
}

TEST_CASE("winner: of equals the first, of none nothing") {
  Comparison comparison = test::small_comparison();
  comparison.schedules[1].iterations = comparison.schedules[0].iterations;
  CHECK(winner(comparison) == "slow");
  for (ScheduleResult& schedule : comparison.schedules) {
    schedule.iterations[0].fits = false;
  }
  CHECK(winner(comparison).empty());
  CHECK(winner(Comparison{}).empty());
}

TEST_CASE("work bound: the least bound of each iteration, then the mean") {
  Comparison comparison = test::small_comparison();
  CHECK(work_bound_ms(comparison) == (75.0 + 190.0) / 2.0);
  comparison.schedules[0].iterations[1].lower_bound = test::ms(100);
  CHECK(work_bound_ms(comparison) == (75.0 + 100.0) / 2.0);
  CHECK(work_bound_ms(Comparison{}) == 0.0);
}
