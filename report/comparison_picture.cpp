// SPDX-License-Identifier: Apache-2.0
#include "report/comparison_picture.hpp"

#include "report/axis.hpp"
#include "report/figures.hpp"
#include "report/frame.hpp"
#include "report/palette.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr double kBarRow = 34.0;
constexpr double kBar = 20.0;
constexpr double kValueWidth = 230.0;   ///< for the texts right of the bars
constexpr double kVerdictWidth = 95.0;  ///< for "does not fit" behind them
constexpr double kLinesHeight = 300.0;
constexpr std::size_t kMostPoints = 1200;  ///< of a line: about one per pixel
constexpr Theme kLoad = {"load", "#dfe3e7"};

std::size_t iterations_of(const Comparison& comparison) {
  return comparison.schedules.empty() ? 0 : comparison.schedules.front().iterations.size();
}

struct Bars {
  const Comparison& comparison;
  const std::vector<ScheduleSummary>& summaries;
  Scale x;
  double top;
  int decimals;
  bool winner_known;
  std::size_t winner;
};

void draw_bar(Svg& svg, const Bars& bars, std::size_t i) {
  const ScheduleSummary& summary = bars.summaries[i];
  const Spread& time = summary.iteration_time_ms;
  const double top = bars.top + kBarRow * static_cast<double>(i) + (kBarRow - kBar) / 2.0;
  const double middle = top + kBar / 2.0;
  const bool wins = bars.winner_known && bars.winner == i;
  svg.text(bars.x.from - 10.0, middle + 5.0, short_name(bars.comparison.schedules[i].name),
           {.size = 14.0, .anchor = Anchor::End, .bold = wins});
  const double opacity = summary.fits ? 1.0 : 0.35;
  svg.area(fmt::format("M{} {}H{}v{}H{}Z", svg_number(bars.x.from), svg_number(top),
                       svg_number(bars.x(time.mean)), svg_number(kBar), svg_number(bars.x.from)),
           {"", schedule_colour(i)}, opacity);
  if (time.max > time.min) {
    svg.line(bars.x(time.min), middle, bars.x(time.max), middle, kInk, {.width = 1.5});
    for (const double end : {time.min, time.max}) {
      svg.line(bars.x(end), middle - 5.0, bars.x(end), middle + 5.0, kInk, {.width = 1.5});
    }
  }
  const std::string value = fmt::format("{} ms · {} ×", fixed(time.mean, bars.decimals),
                                        fixed(summary.throughput_ratio, 3));
  const double x = bars.x(std::max(time.max, time.mean)) + 10.0;
  svg.rect(x - 4.0, top, text_width(value, 14.0), kBar, kPaper);
  svg.text(x, middle + 5.0, value, {.size = 14.0, .bold = wins});
  if (!summary.fits) {
    svg.text(x + text_width(value, 14.0) + 6.0, middle + 5.0, "does not fit",
             {.size = 13.0, .theme = kAlarm});
  }
}

/// Draws all bars with their axis; returns the y below them.
double draw_bars(Svg& svg, const Comparison& comparison,
                 const std::vector<ScheduleSummary>& summaries, double top) {
  double largest = 0.0;
  for (const ScheduleSummary& summary : summaries) {
    largest = std::max(largest, summary.iteration_time_ms.max);
  }
  const std::vector<std::size_t> order = ranking(summaries);
  const bool all_fit = std::ranges::all_of(summaries, &ScheduleSummary::fits);
  const double values_width = kValueWidth + (all_fit ? 0.0 : kVerdictWidth);
  const Bars bars{comparison,
                  summaries,
                  {0.0, std::max(largest, 1e-9), kMargin + names_width(comparison) + 12.0,
                   kPictureWidth - kMargin - values_width},
                  top,
                  time_decimals(summaries),
                  !order.empty(),
                  order.empty() ? 0 : order.front()};
  const double bottom = top + kBarRow * static_cast<double>(summaries.size());
  const Ticks ticks = nice_ticks(0.0, bars.x.high, 8);
  for (const double value : ticks.values) {
    svg.line(bars.x(value), top, bars.x(value), bottom + 5.0, kGrid);
    svg.text(bars.x(value), bottom + 19.0, fixed(value, ticks.decimals),
             {.size = 12.0, .anchor = Anchor::Middle, .theme = kDim});
  }
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    draw_bar(svg, bars, i);
  }
  svg.text((bars.x.from + bars.x.to) / 2.0, bottom + 38.0,
           "iteration time (ms): mean, whiskers from least to largest",
           {.size = 13.0, .anchor = Anchor::Middle, .theme = kDim});
  const double bound = work_bound_ms(comparison);
  if (bound > 0.0 && bound < bars.x.high) {
    svg.line(bars.x(bound), top - 4.0, bars.x(bound), bottom, kInk, {.width = 1.5, .dash = "5 4"});
    svg.text(bars.x(bound), top - 9.0, fmt::format("work bound {} ms", fixed(bound, bars.decimals)),
             {.size = 12.0, .anchor = Anchor::Middle, .theme = kDim});
  }
  return bottom + 46.0;
}

/// Means of consecutive groups, so that no line has more than kMostPoints points.
std::vector<double> thinned(const std::vector<double>& values) {
  const std::size_t group = (values.size() + kMostPoints - 1) / kMostPoints;
  if (group <= 1) {
    return values;
  }
  std::vector<double> out;
  for (std::size_t first = 0; first < values.size(); first += group) {
    const std::size_t last = std::min(first + group, values.size());
    double sum = 0.0;
    for (std::size_t i = first; i < last; ++i) {
      sum += values[i];
    }
    out.push_back(sum / static_cast<double>(last - first));
  }
  return out;
}

std::vector<double> times_ms(const ScheduleResult& schedule) {
  std::vector<double> out;
  out.reserve(schedule.iterations.size());
  for (const IterationResult& iteration : schedule.iterations) {
    out.push_back(to_milliseconds(iteration.iteration));
  }
  return out;
}

/// "x,y x,y …" as path data; `values` spread evenly from the first to the last iteration.
std::string polyline(const std::vector<double>& values, const Scale& x, const Scale& y) {
  std::string path;
  const double step =
      values.size() > 1 ? (x.high - x.low) / static_cast<double>(values.size() - 1) : 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    path +=
        fmt::format("{}{} {}", i == 0 ? 'M' : 'L',
                    svg_number(x(x.low + step * static_cast<double>(i))), svg_number(y(values[i])));
  }
  return path;
}

/// Range of all times with some air; from zero where they spread that far anyway.
std::pair<double, double> time_range(const Comparison& comparison) {
  double low = std::numeric_limits<double>::max();
  double high = 0.0;
  for (const ScheduleResult& schedule : comparison.schedules) {
    for (const double value : times_ms(schedule)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  const double air = std::max(0.06 * (high - low), 0.01 * high);
  return {low < 0.4 * high ? 0.0 : std::max(0.0, low - air), high + air};
}

/// The first load that has a value for every iteration.
const LoadSeries* shown_load(const Comparison& comparison) {
  const auto found = std::ranges::find_if(comparison.loads, [&](const LoadSeries& load) {
    return load.per_iteration.size() >= iterations_of(comparison) &&
           std::ranges::all_of(load.per_iteration, [](double v) { return std::isfinite(v); });
  });
  return found == comparison.loads.end() ? nullptr : &*found;
}

void draw_load(Svg& svg, const LoadSeries& load, const Scale& x, const Scale& time) {
  const double largest = *std::ranges::max_element(load.per_iteration);
  // The area stays in the lower two thirds, so that the lines are seldom in front of it.
  const Scale y{0.0, std::max(largest, 1e-9) * 1.5, time.from, time.to};
  const std::string base = svg_number(time.from);
  svg.area(fmt::format("{}L{} {}L{} {}Z", polyline(thinned(load.per_iteration), x, y),
                       svg_number(x.to), base, svg_number(x.from), base),
           kLoad);
  const Ticks ticks = nice_ticks(0.0, largest, 3);
  for (const double value : ticks.values) {
    svg.text(x.to + 8.0, y(value) + 4.0, fixed(value, ticks.decimals),
             {.size = 12.0, .theme = kDim});
  }
}

void draw_lines_axes(Svg& svg, const Scale& x, const Scale& y) {
  const Ticks times = nice_ticks(y.low, y.high, 6);
  for (const double value : times.values) {
    svg.line(x.from, y(value), x.to, y(value), kGrid);
    svg.text(x.from - 8.0, y(value) + 4.0, fixed(value, times.decimals),
             {.size = 12.0, .anchor = Anchor::End, .theme = kDim});
  }
  const Ticks iterations = nice_ticks(x.low, x.high, 10);
  for (const double value : iterations.values) {
    if (value == std::floor(value)) {
      svg.line(x(value), y.from, x(value), y.from + 5.0, kAxis);
      svg.text(x(value), y.from + 19.0, fixed(value, 0),
               {.size = 12.0, .anchor = Anchor::Middle, .theme = kDim});
    }
  }
  svg.line(x.from, y.from, x.to, y.from, kAxis);
  svg.text((x.from + x.to) / 2.0, y.from + 38.0, "iteration",
           {.size = 13.0, .anchor = Anchor::Middle, .theme = kDim});
}

std::vector<LegendEntry> lines_legend(const Comparison& comparison) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    const std::string_view dashed = schedule_dash(i).empty() ? "" : " (dashed)";
    entries.push_back({fmt::format("{}{}", short_name(comparison.schedules[i].name), dashed),
                       {"", schedule_colour(i)}});
  }
  if (const LoadSeries* load = shown_load(comparison)) {
    entries.push_back({load->name + " (right axis)", kLoad});
  }
  return entries;
}

void draw_lines(Svg& svg, const Comparison& comparison, double top) {
  svg.text(kMargin, top + 16.0, "Iteration time (ms) over the iterations",
           {.size = 15.0, .bold = true});
  const std::vector<LegendEntry> entries = lines_legend(comparison);
  draw_legend(svg, top + 28.0, entries);
  const double plot_top = top + 28.0 + legend_height(entries) + 12.0;
  const auto [low, high] = time_range(comparison);
  const Scale x{0.0, static_cast<double>(iterations_of(comparison) - 1), kMargin + 70.0,
                kPictureWidth - kMargin - 60.0};
  const Scale y{low, high, plot_top + kLinesHeight, plot_top};
  if (const LoadSeries* load = shown_load(comparison)) {
    draw_load(svg, *load, x, y);
  }
  draw_lines_axes(svg, x, y);
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    svg.curve(polyline(thinned(times_ms(comparison.schedules[i])), x, y), {"", schedule_colour(i)},
              {.width = 2.0, .dash = schedule_dash(i)});
  }
}

double lines_height(const Comparison& comparison) {
  if (iterations_of(comparison) < 2) {
    return 0.0;
  }
  return 28.0 + legend_height(lines_legend(comparison)) + 12.0 + kLinesHeight + 46.0;
}

}  // namespace

std::string comparison_svg(const Comparison& comparison) {
  const std::vector<ScheduleSummary> summaries = summarize_all(comparison);
  const double bars_top = kHeadingHeight + 20.0;
  const double bars_height = kBarRow * static_cast<double>(summaries.size()) + 46.0;
  Svg svg(kPictureWidth, bars_top + bars_height + lines_height(comparison) + 16.0,
          comparison.title);
  const std::size_t count = iterations_of(comparison);
  draw_heading(svg, {comparison.title,
                     fmt::format("{} iteration{}; × is the throughput relative to the first "
                                 "schedule, higher is better",
                                 count, count == 1 ? "" : "s")});
  const double below = draw_bars(svg, comparison, summaries, bars_top);
  if (count >= 2) {
    draw_lines(svg, comparison, below);
  }
  return std::move(svg).finish();
}

}  // namespace dipsim
