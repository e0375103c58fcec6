// SPDX-License-Identifier: Apache-2.0
#include "report/idle_picture.hpp"

#include "report/axis.hpp"
#include "report/figures.hpp"
#include "report/frame.hpp"
#include "report/palette.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr double kBarRow = 34.0;
constexpr double kBar = 20.0;

/// One entry per part of a bar, in its order.
std::vector<LegendEntry> legend() {
  std::vector<LegendEntry> entries = {{"computing", {"", kComputingColour}}};
  for (std::size_t cause = 0; cause < kIdleCauses.size(); ++cause) {
    entries.push_back({fmt::format("idle: {}", kIdleCauses[cause].key), {"", idle_colour(cause)}});
  }
  entries.push_back({"gradient reduction and optimizer", {"", kEndingColour}});
  return entries;
}

std::vector<double> parts_of(const TimeShares& shares) {
  std::vector<double> parts = {shares.computing_ms};
  parts.insert(parts.end(), shares.idle_ms.begin(), shares.idle_ms.end());
  parts.push_back(shares.ending_ms);
  return parts;
}

double total(const std::vector<double>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

void draw_bar(Svg& svg, const std::vector<double>& parts, const Scale& x, double top,
              const std::vector<LegendEntry>& entries) {
  double from_ms = 0.0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double from = x(from_ms);
    from_ms += parts[i];
    const double width = x(from_ms) - from;
    if (width < 0.05) {
      continue;
    }
    svg.rect(from, top, width, kBar, entries[i].colour);
    const std::string label = percent(parts[i] / total(parts));
    if (width > text_width(label, 12.0) + 4.0) {
      svg.text(from + width / 2.0, top + 14.5, label,
               {.size = 12.0,
                .anchor = Anchor::Middle,
                .theme = {"", text_colour_on(entries[i].colour.colour)}});
    }
  }
}

}  // namespace

std::string idle_svg(const Comparison& comparison) {
  std::vector<std::vector<double>> bars;
  double largest = 0.0;
  for (const ScheduleResult& schedule : comparison.schedules) {
    bars.push_back(parts_of(time_shares(schedule)));
    largest = std::max(largest, total(bars.back()));
  }
  const std::vector<LegendEntry> entries = legend();
  const Scale x{0.0, std::max(largest, 1e-9), kMargin + names_width(comparison) + 12.0,
                kPictureWidth - kMargin - 100.0};
  const double top = kHeadingHeight + legend_height(entries) + 10.0;
  const double bottom = top + kBarRow * static_cast<double>(bars.size());
  const std::string title = "Where an average rank spends the iteration";

  Svg svg(kPictureWidth, bottom + kTimeAxisHeight + 4.0, title);
  draw_heading(svg, {title,
                     "mean over all iterations and ranks; in the boxes: percent of the "
                     "iteration time"});
  draw_legend(svg, kHeadingHeight, entries);
  draw_time_axis(svg, x, top, bottom);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double bar_top = top + kBarRow * static_cast<double>(i) + (kBarRow - kBar) / 2.0;
    svg.text(x.from - 10.0, bar_top + 15.0, short_name(comparison.schedules[i].name),
             {.size = kNameSize, .anchor = Anchor::End});
    draw_bar(svg, bars[i], x, bar_top, entries);
    svg.text(x(total(bars[i])) + 8.0, bar_top + 15.0,
             fixed(total(bars[i]), time_decimals(largest)) + " ms", {.size = 13.0});
  }
  return std::move(svg).finish();
}

}  // namespace dipsim
