// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <string_view>

namespace dipsim {

/// Colour of a pass: a hue per module, light for F, middle for I, dark for B, greyish for W.
std::string_view pass_colour(std::size_t module, Op op);

/// Black or white, whichever is easier to read on a "#rrggbb" colour.
std::string_view text_colour_on(std::string_view colour);

/// Colour of the line or bar of schedule `index`.
std::string_view schedule_colour(std::size_t index);

/// Dash pattern of its line: solid until the colours repeat.
std::string_view schedule_dash(std::size_t index);

inline constexpr std::string_view kComputingColour = "#5b8fc7";
inline constexpr std::string_view kEndingColour = "#74a57f";
inline constexpr std::string_view kTransferColour = "#d8572a";
inline constexpr std::string_view kCollectiveColour = "#7a4fb5";
inline constexpr std::string_view kCopyOutColour = "#0f8a8a";
inline constexpr std::string_view kCopyInColour = "#b8860b";
inline constexpr std::string_view kOptimizerColour = "#8d99a5";

/// Colour of part `cause` of IdleByCause.
std::string_view idle_colour(std::size_t cause);

}  // namespace dipsim
