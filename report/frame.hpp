// SPDX-License-Identifier: Apache-2.0
// What all pictures have in common: heading, legend, time axis.
#pragma once

#include "report/axis.hpp"
#include "report/names.hpp"
#include "report/svg.hpp"
#include "sim/graph/results.hpp"

#include <string>
#include <vector>

namespace dipsim {

struct PictureText {
  std::string title;
  std::string subtitle;
};

inline constexpr double kPictureWidth = 1400.0;
inline constexpr double kMargin = 20.0;

/// Draws title and subtitle; returns the y at which the next part may start.
double draw_heading(Svg& svg, const PictureText& text);

inline constexpr double kHeadingHeight = 64.0;

struct LegendEntry {
  std::string name;
  Theme colour;
};

/// Height that draw_legend() needs.
double legend_height(const std::vector<LegendEntry>& entries);

/// Coloured squares and their names, in lines as wide as the picture, from y downwards.
void draw_legend(Svg& svg, double y, const std::vector<LegendEntry>& entries);

/// A name of at most 28 characters: longer ones are cut and end in "…".
std::string short_name(const std::string& name);

/// Pixels for the short names of all schedules, at kNameSize.
double names_width(const Comparison& comparison);

inline constexpr double kNameSize = 14.0;

/// Time axis of the pictures with a row per rank, the same in all of them so that they can be
/// compared: from 0 to `last_ms`, right of the names of the ranks.
Scale rank_row_scale(double last_ms, const TaskNames& names);

/// Where the texts right of the rows start.
inline constexpr double kRowTextX = kPictureWidth - 130.0;

/// Vertical grid lines from `top` to `bottom` and the time in ms below; needs kTimeAxisHeight.
void draw_time_axis(Svg& svg, const Scale& ms, double top, double bottom);

inline constexpr double kTimeAxisHeight = 46.0;

}  // namespace dipsim
