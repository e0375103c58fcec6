// SPDX-License-Identifier: Apache-2.0
#include "report/memory_picture.hpp"

#include "report/axis.hpp"
#include "report/names.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"
#include "sim/graph/memory_contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr std::size_t kMostPanels = 16;
constexpr double kPanelGap = 14.0;

/// What is there all the time, from the bottom.
struct Band {
  std::string_view title;
  Theme theme;
  Bytes MemoryContents::* member;
};

constexpr std::array<Band, 4> kBands = {{
    {"weights", {"", "#8799ab"}, &MemoryContents::weights},
    {"gradients", {"", "#a9b6c3"}, &MemoryContents::gradients},
    {"optimizer state", {"", "#c3a98f"}, &MemoryContents::optimizer},
    {"reserved", {"", "#d9cfc4"}, &MemoryContents::reserved},
}};
constexpr Theme kVaryingPart = {"", "#7db0e3"};
constexpr Theme kEdge = {"edge", "#1f5fa8"};

double limit_gib(const PlanRun& run, std::size_t rank) {
  return to_gib(run.graph.placement.ranks[rank].memory_limit);
}

/// Ranks in their order; of many, those that come nearest to their limits.
std::vector<std::size_t> ranks_to_show(const PlanRun& run) {
  std::vector<std::size_t> ranks(run.timeline.memory.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = i;
  }
  if (ranks.size() <= kMostPanels) {
    return ranks;
  }
  std::ranges::sort(ranks, {}, [&](std::size_t i) {
    const double limit = limit_gib(run, i);
    const double peak = to_gib(run.timeline.memory[i].peak);
    return std::pair(limit > 0.0 ? -peak / limit : -peak, i);
  });
  ranks.resize(kMostPanels);
  std::ranges::sort(ranks);
  return ranks;
}

double panel_height(std::size_t panels) {
  if (panels <= 4) {
    return 120.0;
  }
  return panels <= 8 ? 88.0 : 62.0;
}

/// Top of the y axis, common to all panels. A limit far above every peak is left out: it would
/// flatten the curves.
double top_gib(const PlanRun& run, const std::vector<std::size_t>& ranks) {
  double peak = 0.0;
  double limit = 0.0;
  for (const std::size_t rank : ranks) {
    peak = std::max(peak, to_gib(run.timeline.memory[rank].peak));
    limit = std::max(limit, limit_gib(run, rank));
  }
  const double top = limit > 2.5 * peak ? peak : std::max(peak, limit);
  return top > 0.0 ? 1.06 * top : 1.0;
}

/// The step curve as path data, without its first move. Where points lie closer than half a pixel
/// the highest of them stands for all: peaks are never lost.
std::string steps(const MemoryCurve& curve, const Scale& x, const Scale& y) {
  std::string path;
  double drawn_x = -1.0;
  double drawn_y = -1.0;
  std::size_t i = 0;
  while (i < curve.points.size()) {
    const double at = x(to_milliseconds(curve.points[i].at - kStart));
    double highest = to_gib(curve.points[i].held);
    std::size_t next = i + 1;
    while (next < curve.points.size() &&
           x(to_milliseconds(curve.points[next].at - kStart)) < at + 0.5) {
      highest = std::max(highest, to_gib(curve.points[next].held));
      ++next;
    }
    const double level = y(highest);
    if (drawn_x < 0.0) {
      path += fmt::format("V{}", svg_number(level));
    } else if (std::abs(level - drawn_y) >= 0.01) {
      path += fmt::format("H{}V{}", svg_number(at), svg_number(level));
    }
    drawn_x = at;
    drawn_y = level;
    i = next;
  }
  return path;
}

struct Panel {
  const PlanRun& run;
  std::size_t rank;
  const MemoryContents& fixed;  ///< before the first pass
  Scale x;
  Scale y;  ///< from = bottom, to = top

  [[nodiscard]] const MemoryCurve& curve() const { return run.timeline.memory[rank]; }
};

void draw_axis(Svg& svg, const Panel& panel) {
  const Ticks ticks = nice_ticks(0.0, panel.y.high, panel.y.from - panel.y.to > 60.0 ? 4 : 2);
  for (const double value : ticks.values) {
    svg.line(panel.x.from, panel.y(value), panel.x.to, panel.y(value), kGrid);
    svg.text(panel.x.from - 6.0, panel.y(value) + 4.0, fixed(value, ticks.decimals),
             {.size = 11.0, .anchor = Anchor::End, .theme = kDim});
  }
}

void draw_curve(Svg& svg, const Panel& panel) {
  const MemoryCurve& curve = panel.curve();
  const std::string line =
      fmt::format("M{} {}", svg_number(panel.x.from), svg_number(panel.y(0.0))) +
      steps(curve, panel.x, panel.y) + 'H' + svg_number(panel.x.to);
  svg.area(line + 'V' + svg_number(panel.y(0.0)) + 'Z', kVaryingPart);
  Bytes below;
  for (const Band& band : kBands) {
    const double bottom = panel.y(to_gib(below));
    below += panel.fixed.*band.member;
    const double top = panel.y(to_gib(below));
    if (top < bottom) {
      svg.rect(panel.x.from, top, panel.x.to - panel.x.from, bottom - top, band.theme);
    }
  }
  svg.curve(line, kEdge, {.width = 1.2});
}

void draw_limit_and_peak(Svg& svg, const Panel& panel) {
  const double limit = limit_gib(panel.run, panel.rank);
  const double peak = to_gib(panel.curve().peak);
  const bool fits = limit <= 0.0 ||
                    panel.curve().peak <= panel.run.graph.placement.ranks[panel.rank].memory_limit;
  if (limit > 0.0 && limit <= panel.y.high) {
    svg.line(panel.x.from, panel.y(limit), panel.x.to, panel.y(limit), kAlarm,
             {.width = 1.5, .dash = "6 4"});
  }
  svg.circle(panel.x(to_milliseconds(panel.curve().peak_at - kStart)), panel.y(peak), 4.0,
             fits ? kInk : kAlarm);
  const double middle = (panel.y.from + panel.y.to) / 2.0;
  svg.text(kRowTextX, middle - 2.0, fmt::format("peak {}", fixed(peak, gib_decimals(peak))),
           {.size = 13.0, .bold = true, .theme = fits ? kInk : kAlarm});
  if (limit > 0.0) {
    svg.text(kRowTextX, middle + 14.0,
             fmt::format("{} % of {}", percent(peak / limit, 0), fixed(limit, gib_decimals(limit))),
             {.size = 12.0, .theme = fits ? kDim : kAlarm});
  }
}

std::string subtitle(const PictureText& text, const PlanRun& run, std::size_t shown) {
  const std::size_t all = run.timeline.memory.size();
  return shown == all ? text.subtitle
                      : fmt::format("{} · the {} fullest of {} ranks", text.subtitle, shown, all);
}

}  // namespace

std::string memory_svg(const PlanRun& run, const PictureText& text) {
  const TaskNames names(run.graph);
  const std::vector<std::size_t> ranks = ranks_to_show(run);
  const double high = top_gib(run, ranks);
  const bool limit_shown =
      std::ranges::any_of(ranks, [&](std::size_t rank) { return limit_gib(run, rank) <= high; });
  const std::vector<LegendEntry> legend = {
      {"weights", kBands[0].theme},
      {"gradients", kBands[1].theme},
      {"optimizer state", kBands[2].theme},
      {"reserved", kBands[3].theme},
      {"activations, recomputation, scratch", kVaryingPart},
      {limit_shown ? "limit" : "limit (above the picture)", kAlarm}};
  Time end = kStart;
  for (const Span& span : run.timeline.spans) {
    end = std::max(end, span.end);
  }
  const Scale x = rank_row_scale(to_milliseconds(end - kStart), names);
  const double height = panel_height(ranks.size());
  const double top = kHeadingHeight + legend_height(legend) + 14.0;
  const double bottom = top + height * static_cast<double>(ranks.size());

  const std::vector<MemoryContents> fixed =
      memory_contents(run.graph, run.schedule, run.timeline.spans,
                      std::vector<Time>(run.timeline.memory.size(), Time::min()));

  Svg svg(kPictureWidth, bottom + kTimeAxisHeight + 4.0, text.title);
  draw_heading(svg, {text.title, subtitle(text, run, ranks.size())});
  draw_legend(svg, kHeadingHeight, legend);
  draw_time_axis(svg, x, top, bottom);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double panel_top = top + height * static_cast<double>(i);
    const Panel panel{
        run, ranks[i], fixed[ranks[i]], x, {0.0, high, panel_top + height - kPanelGap, panel_top}};
    svg.text(kMargin, (panel.y.from + panel.y.to) / 2.0 + 4.0, names.rank(RankId(ranks[i])));
    draw_axis(svg, panel);
    draw_curve(svg, panel);
    draw_limit_and_peak(svg, panel);
  }
  return std::move(svg).finish();
}

}  // namespace dipsim
