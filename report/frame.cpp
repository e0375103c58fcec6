// SPDX-License-Identifier: Apache-2.0
#include "report/frame.hpp"

#include "report/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace dipsim {

namespace {

constexpr double kLegendLine = 20.0;
constexpr double kLegendSize = 13.0;
constexpr double kSwatch = 12.0;

/// Calls place(entry, x, line) for every entry; returns the number of lines.
template <class Place>
int flow(const std::vector<LegendEntry>& entries, Place place) {
  double x = kMargin;
  int line = 0;
  for (const LegendEntry& entry : entries) {
    const double width = kSwatch + 6.0 + text_width(entry.name, kLegendSize) + 14.0;
    if (x > kMargin && x + width > kPictureWidth - kMargin) {
      x = kMargin;
      ++line;
    }
    place(entry, x, line);
    x += width;
  }
  return entries.empty() ? 0 : line + 1;
}

constexpr std::size_t kLongestName = 28;

constexpr double kTickLabels = 50.0;

constexpr double kRankSize = 13.0;

}  // namespace

double draw_heading(Svg& svg, const PictureText& text) {
  svg.text(kMargin, 30.0, text.title, {.size = 19.0, .bold = true});
  svg.text(kMargin, 51.0, text.subtitle, {.size = 13.0, .theme = kDim});
  return kHeadingHeight;
}

double legend_height(const std::vector<LegendEntry>& entries) {
  return kLegendLine * flow(entries, [](const LegendEntry&, double, int) {});
}

void draw_legend(Svg& svg, double y, const std::vector<LegendEntry>& entries) {
  flow(entries, [&](const LegendEntry& entry, double x, int line) {
    const double top = y + kLegendLine * line;
    svg.rect(x, top + 2.0, kSwatch, kSwatch, entry.colour);
    svg.text(x + kSwatch + 6.0, top + 13.0, entry.name, {.size = kLegendSize});
  });
}

std::string short_name(const std::string& name) {
  if (display_width(name) <= kLongestName) {
    return name;
  }
  std::size_t bytes = 0;
  for (std::size_t width = 0; bytes < name.size(); ++bytes) {
    const bool starts_character = (static_cast<unsigned char>(name[bytes]) & 0xC0U) != 0x80U;
    if (starts_character && ++width == kLongestName) {
      break;
    }
  }
  return name.substr(0, bytes) + "…";
}

double names_width(const Comparison& comparison) {
  double width = 0.0;
  for (const ScheduleResult& schedule : comparison.schedules) {
    width = std::max(width, text_width(short_name(schedule.name), kNameSize));
  }
  return std::ceil(width);
}

Scale rank_row_scale(double last_ms, const TaskNames& names) {
  double label_width = 0.0;
  for (std::size_t rank = 0; rank < names.ranks(); ++rank) {
    label_width = std::max(label_width, text_width(names.rank(RankId(rank)), kRankSize));
  }
  return {0.0, std::max(last_ms, 1e-6), std::ceil(kMargin + label_width + kTickLabels),
          kRowTextX - 10.0};
}

void draw_time_axis(Svg& svg, const Scale& ms, double top, double bottom) {
  const Ticks ticks = nice_ticks(ms.low, ms.high, 12);
  for (const double value : ticks.values) {
    svg.line(ms(value), top, ms(value), bottom + 5.0, kGrid);
    svg.text(ms(value), bottom + 19.0, fixed(value, ticks.decimals),
             {.size = 12.0, .anchor = Anchor::Middle, .theme = kDim});
  }
  svg.text((ms.from + ms.to) / 2.0, bottom + 38.0, "time (ms)",
           {.size = 13.0, .anchor = Anchor::Middle, .theme = kDim});
}

}  // namespace dipsim
