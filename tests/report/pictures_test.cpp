// SPDX-License-Identifier: Apache-2.0
#include "report/pictures.hpp"

#include "report/comparison_picture.hpp"
#include "report/idle_picture.hpp"
#include "report/memory_picture.hpp"
#include "report/palette.hpp"
#include "report/timeline_picture.hpp"
#include "report/timeline_rows.hpp"
#include "tests/report/example.hpp"
#include "tests/report/markup.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace dipsim;

namespace {

constexpr std::size_t kLargest = 1'500'000;

std::vector<std::string> all_of(const Pictures& pictures) {
  std::vector<std::string> all = {pictures.comparison, pictures.idle};
  all.insert(all.end(), pictures.timeline.begin(), pictures.timeline.end());
  all.insert(all.end(), pictures.memory.begin(), pictures.memory.end());
  return all;
}

void check_sound(const std::string& svg) {
  CHECK(test::markup_fault(svg) == "");
  CHECK(svg.starts_with("<svg "));
  CHECK_FALSE(test::prints_nan(svg));
  CHECK(svg.find("n/a") == std::string::npos);
  CHECK(svg.find("<script") == std::string::npos);
}

}  // namespace

TEST_CASE("pictures: well-formed and the same bytes every time") {
  const Comparison comparison = test::small_comparison();
  const std::vector<std::string> first = all_of(draw_pictures(comparison));
  CHECK(first.size() == 2 + 3 + 3);
  for (const std::string& svg : first) {
    check_sound(svg);
  }
  CHECK(first == all_of(draw_pictures(test::small_comparison())));
}

TEST_CASE("pictures: hostile names stay text") {
  for (const std::string& svg : all_of(draw_pictures(test::hostile_comparison()))) {
    check_sound(svg);
  }
}

TEST_CASE("pictures: schedules without a timeline have no timeline picture") {
  Comparison comparison = test::small_comparison();
  comparison.schedules[1].sample = {};
  const Pictures pictures = draw_pictures(comparison);
  CHECK(pictures.timeline[1].empty());
  CHECK(pictures.memory[1].empty());
  CHECK_FALSE(pictures.timeline[2].empty());
}

TEST_CASE("timeline: every pass is a box with its microbatch, module and times") {
  const std::string svg = timeline_svg(test::GPipe(2, 3).run(), {"title", "subtitle"});
  CHECK(test::count(svg, "<title>F mb") == 2 * 3);
  CHECK(test::count(svg, "<title>B mb") == 2 * 3);
  // On rank 1 the first forward starts 2.000001 ms + 0.75 ms after the start.
  CHECK(svg.find("<title>F mb0 llm chunk 1, 2.7500–4.7500 ms (2.0000 ms), keep</title>") !=
        std::string::npos);
  CHECK(svg.find(">transfer (sent)<") != std::string::npos);
  CHECK(svg.find(">F llm<") != std::string::npos);
  CHECK(test::count(svg, ">rank ") == 2);
}

TEST_CASE("timeline: idle share of a row is what its passes leave of the makespan") {
  const PlanRun run = test::GPipe(1, 5).run();
  const TimelineRows one = timeline_rows(run, TaskNames(run.graph), 64);
  REQUIRE(one.idle_share.size() == 1);
  CHECK(one.idle_share[0] == doctest::Approx(0.0));
  const PlanRun two = test::GPipe(2, 1).run();
  const TimelineRows rows = timeline_rows(two, TaskNames(two.graph), 64);
  const double busy = 6.000001;
  const double makespan = 2.0 * busy + 2.0 * 0.75;
  CHECK(rows.idle_share[0] == doctest::Approx(1.0 - busy / makespan).epsilon(1e-9));
}

TEST_CASE("timeline: boxes follow their rows, in time, in the colour of module and pass") {
  const PlanRun run = test::GPipe(3, 4).run();
  const TimelineRows rows = timeline_rows(run, TaskNames(run.graph), 64);
  REQUIRE(rows.boxes.size() == 3 * 4 * 2);
  REQUIRE(rows.colours.size() == 2);
  CHECK(rows.colours[0].name == "F llm");
  CHECK(rows.colours[1].fill == pass_colour(0, Op::B));
  CHECK(rows.marks.size() == 2 * 4 * 2);
  for (std::size_t i = 1; i < rows.boxes.size(); ++i) {
    const Box& before = rows.boxes[i - 1];
    const Box& box = rows.boxes[i];
    CHECK((before.row < box.row || before.end <= box.start));
  }
}

TEST_CASE("timeline: passes that run as one step share the height of the row") {
  PlanRun run = test::GPipe(1, 2).run();
  run.schedule.compute.clear();
  run.schedule.compute.add_row(
      std::vector<Slot>{{TaskId(0), TaskId()}, {TaskId(1), TaskId(2)}, {TaskId(3), TaskId()}});
  run.timeline.spans[2] = run.timeline.spans[1];
  const TimelineRows rows = timeline_rows(run, TaskNames(run.graph), 64);
  CHECK(rows.boxes[0].half == Half::Whole);
  CHECK(rows.boxes[1].half == Half::Upper);
  CHECK(rows.boxes[2].half == Half::Lower);
  check_sound(timeline_svg(run, {"", ""}));
}

TEST_CASE("timeline: of many ranks whole replicas are shown, the slowest among them") {
  PlanRun run = test::GPipe(12, 2).run();
  for (std::size_t i = 0; i < 12; ++i) {
    run.graph.placement.ranks[i].replica = static_cast<int>(i / 4);
  }
  run.timeline.spans.back().end += test::ms(1000);  // the last backward is on rank 0
  run.timeline.spans[0].end += test::ms(5000);
  const TimelineRows five = timeline_rows(run, TaskNames(run.graph), 5);
  CHECK(five.ranks == std::vector<RankId>{RankId(0), RankId(1), RankId(2), RankId(3)});
  const TimelineRows three = timeline_rows(run, TaskNames(run.graph), 3);
  CHECK(three.ranks.size() == 3);
  CHECK(timeline_rows(run, TaskNames(run.graph), 8).ranks.size() == 8);
}

TEST_CASE("large inputs: pictures stay small and sound") {
  const PlanRun run = test::GPipe(100, 400).run();  // 80,000 passes
  const std::string timeline = timeline_svg(run, {"large", ""});
  CHECK(timeline.size() < kLargest);
  check_sound(timeline);
  CHECK(timeline.find("64 of 100 ranks shown") != std::string::npos);
  const std::string memory = memory_svg(run, {"large", ""});
  CHECK(memory.size() < kLargest);
  check_sound(memory);
  CHECK(memory.find("the 16 fullest of 100 ranks") != std::string::npos);
}

TEST_CASE("large inputs: neighbours of one colour stay apart where there is room") {
  const std::string svg = timeline_svg(test::GPipe(16, 100).run(), {"", ""});  // 3,200 passes
  check_sound(svg);
  CHECK(test::count(svg, " 0h") + test::count(svg, "M") >= 3200);
  CHECK(svg.size() < 200'000);
}

TEST_CASE("memory: the peak and its share of the limit are printed per rank") {
  // All three microbatches are held at once: 2 GiB of weights and 3 GiB of activations of 8 GiB.
  const std::string svg = memory_svg(test::GPipe(2, 3).run(), {"", ""});
  CHECK(test::count(svg, ">peak 5.00<") == 2);
  CHECK(test::count(svg, ">63 % of 8.00<") + test::count(svg, ">62 % of 8.00<") == 2);
  CHECK(svg.find("class=\"alarm\" stroke") != std::string::npos);
}

TEST_CASE("memory: a rank above its limit is marked") {
  const std::string svg = memory_svg(test::GPipe(2, 7).run(), {"", ""});
  CHECK(test::count(svg, "class=\"alarm\" fill=\"#c62828\">peak 9.00<") == 2);
}

TEST_CASE("comparison: names, times and what does not fit") {
  const std::string svg = comparison_svg(test::small_comparison());
  CHECK(svg.find(">170.0 ms · 1.235 ×<") != std::string::npos);
  CHECK(test::count(svg, ">does not fit<") == 1);
  CHECK(svg.find(">images per microbatch (right axis)<") != std::string::npos);
  CHECK(svg.find(">work bound 132.5 ms<") != std::string::npos);
}

TEST_CASE("comparison: one iteration, none, thousands, and loads that are all zero") {
  Comparison comparison = test::small_comparison();
  comparison.loads[0].per_iteration = {0.0, 0.0};
  check_sound(comparison_svg(comparison));
  for (ScheduleResult& schedule : comparison.schedules) {
    schedule.iterations.resize(1);
  }
  const std::string one = comparison_svg(comparison);
  check_sound(one);
  CHECK(one.find("over the iterations") == std::string::npos);
  for (ScheduleResult& schedule : comparison.schedules) {
    schedule.iterations.resize(20'000, schedule.iterations[0]);
  }
  const std::string many = comparison_svg(comparison);
  check_sound(many);
  CHECK(many.size() < 200'000);
  check_sound(comparison_svg(Comparison{}));
  check_sound(idle_svg(Comparison{}));
}

TEST_CASE("idle picture: shares of the iteration time") {
  // slow: 2 ranks, mean iteration 210 ms, of which it computes (150 + 500) / 4 = 162.5 ms.
  const std::string svg = idle_svg(test::small_comparison());
  CHECK(svg.find(">77.4<") != std::string::npos);
  CHECK(svg.find(">210.0 ms<") != std::string::npos);
}
