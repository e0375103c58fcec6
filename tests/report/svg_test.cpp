// SPDX-License-Identifier: Apache-2.0
#include "report/svg.hpp"

#include "report/axis.hpp"
#include "report/palette.hpp"
#include "report/row_painter.hpp"
#include "tests/report/example.hpp"
#include "tests/report/markup.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dipsim;

TEST_CASE("svg: numbers are short, and never NaN") {
  CHECK(svg_number(12.0) == "12");
  CHECK(svg_number(12.345) == "12.35");
  CHECK(svg_number(0.5) == "0.5");
  CHECK(svg_number(-0.001) == "0");
  CHECK(svg_number(std::numeric_limits<double>::infinity()) == "0");
}

TEST_CASE("svg: every part is well-formed, hostile text included") {
  Svg svg(100.0, 50.0, test::kHostile);
  svg.rect(1.0, 2.0, 3.0, 4.0, kGround, test::kHostile);
  svg.line(0.0, 0.0, 1.0, 1.0, kGrid, {.width = 2.0, .dash = "4 3"});
  svg.text(1.0, 1.0, test::kHostile, {.size = 9.0, .anchor = Anchor::End, .bold = true});
  svg.circle(1.0, 1.0, 2.0, {"", "#123456"});
  svg.area("M0 0h1v1z", kGrid, 0.5);
  svg.curve("M0 0h1", kInk, {.width = 1.5});
  svg.begin_labels(10.0, "#000");
  svg.label(1.0, 2.0, test::kHostile);
  svg.end_labels();
  const std::string text = std::move(svg).finish();
  CHECK(test::markup_fault(text) == "");
  CHECK(text.find("<script") == std::string::npos);
}

TEST_CASE("axis: round steps inside the range, about as many as wanted") {
  const Ticks ticks = nice_ticks(0.0, 97.0, 10);
  CHECK(ticks.values == std::vector<double>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90});
  CHECK(ticks.decimals == 0);
  for (const double high : {1e-6, 0.037, 0.4, 1.0, 3.3, 812.4, 86'400'000.0}) {
    const Ticks some = nice_ticks(0.0, high, 8);
    CHECK(some.values.size() >= 4);
    CHECK(some.values.size() <= 17);
    CHECK(some.values.back() <= high * 1.000001);
  }
  CHECK(nice_ticks(0.0, 0.05, 5).decimals == 2);
  CHECK(nice_ticks(3.0, 3.0, 5).values.size() == 1);
  CHECK(nice_ticks(0.0, std::numeric_limits<double>::infinity(), 5).values.size() == 1);
}

TEST_CASE("axis: a scale maps its ends, and an empty range to the middle") {
  const Scale scale{10.0, 20.0, 100.0, 0.0};
  CHECK(scale(10.0) == 100.0);
  CHECK(scale(20.0) == 0.0);
  CHECK(scale(15.0) == 50.0);
  CHECK(Scale{5.0, 5.0, 0.0, 10.0}(5.0) == 5.0);
}

TEST_CASE("row painter: a column has the colour that covers most of it") {
  RowPainter painter(0.0, 4.0, 1.0, 0.5);
  painter.paint(0.0, 1.3, 1);
  painter.paint(1.3, 3.0, 2);
  painter.paint(3.0, 3.4, 3);  // covers less than half of its column
  const std::vector<Run> runs = painter.take_runs();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].from == 0.0);
  CHECK(runs[0].to == 1.0);
  CHECK(runs[0].colour == 1);
  CHECK(runs[1].from == 1.0);
  CHECK(runs[1].to == 3.0);
  CHECK(runs[1].colour == 2);
  CHECK(painter.take_runs().empty());
}

TEST_CASE("row painter: many tiny spans of one colour add up, and no more runs than columns") {
  RowPainter painter(0.0, 10.0, 1.0, 0.5);
  for (int i = 0; i < 10'000; ++i) {
    painter.paint(i * 0.001, i * 0.001 + 0.0008, static_cast<std::size_t>(i % 2));
  }
  CHECK(painter.take_runs().size() <= 11);
  for (int i = 0; i < 8; ++i) {
    painter.paint(2.0 + i * 0.1, 2.1 + i * 0.1, 7);
  }
  const std::vector<Run> runs = painter.take_runs();
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].colour == 7);
}

TEST_CASE("palette: labels are readable on every pass colour") {
  const auto luminance = [](std::string_view colour) {  // WCAG 2.1, relative luminance
    double sum = 0.0;
    const std::vector<double> weights = {0.2126, 0.7152, 0.0722};
    for (std::size_t i = 0; i < 3; ++i) {
      const double c = std::stoi(std::string(colour.substr(1 + 2 * i, 2)), nullptr, 16) / 255.0;
      sum += weights[i] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
  };
  for (std::size_t module = 0; module < 10; ++module) {
    for (const Op op : {Op::F, Op::I, Op::W, Op::B}) {
      const double fill = luminance(pass_colour(module, op));
      const double text = luminance(text_colour_on(pass_colour(module, op)));
      const double contrast = (std::max(fill, text) + 0.05) / (std::min(fill, text) + 0.05);
      CHECK_MESSAGE(contrast >= 4.5, pass_colour(module, op));
    }
  }
}
