// SPDX-License-Identifier: Apache-2.0
#include "report/palette.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace dipsim {

namespace {

struct Tones {
  std::string_view f, i, w, b;
};

// The order keeps neighbours apart for the common colour-vision deficiencies: blue, orange, green,
// purple, teal, pink, olive, grey.
constexpr std::array<Tones, 8> kTones = {{
    {"#9cc5ef", "#4a8fd6", "#5d6f88", "#1f5fa8"},
    {"#f8c592", "#ea8a3f", "#83674d", "#b8560f"},
    {"#aadb9f", "#5bb158", "#5f755b", "#2a7a2e"},
    {"#d0bcec", "#9d76d4", "#70618a", "#6a3fa8"},
    {"#97ddda", "#3aabab", "#527676", "#0f7378"},
    {"#f6b7ce", "#de6f9c", "#84596b", "#a82a60"},
    {"#ded890", "#b3a737", "#716d4b", "#7a6f10"},
    {"#cdd2d8", "#87919c", "#63686d", "#4a525b"},
}};

constexpr std::array<std::string_view, 10> kSchedules = {"#0072b2", "#d55e00", "#009e73", "#b14d8f",
                                                         "#e0a100", "#3fa7d6", "#7f3c8d", "#6b6b6b",
                                                         "#8a8f00", "#e0413f"};

constexpr std::array<double, 3> kLuminanceWeights = {0.2126, 0.7152, 0.0722};

/// Relative luminance of "#rrggbb" (WCAG 2.1).
double luminance(std::string_view colour) {
  double sum = 0.0;
  for (std::size_t i = 0; i < kLuminanceWeights.size(); ++i) {
    int value = 0;
    const char* const digits = colour.data() + 1 + 2 * i;
    std::from_chars(digits, digits + 2, value, 16);
    const double c = value / 255.0;
    sum += kLuminanceWeights[i] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

constexpr std::array<std::string_view, 3> kDashes = {"", "6 3", "2 3"};

constexpr std::array<std::string_view, 5> kIdle = {"#f0b84f", kTransferColour, kCollectiveColour,
                                                   "#cf4f7f", "#7d7d7d"};

}  // namespace

std::string_view pass_colour(std::size_t module, Op op) {
  const Tones& tones = kTones[module % kTones.size()];
  switch (op) {
    case Op::F:
      return tones.f;
    case Op::I:
      return tones.i;
    case Op::W:
      return tones.w;
    default:
      return tones.b;
  }
}

std::string_view text_colour_on(std::string_view colour) {
  // Contrast of WCAG 2.1 is (lighter + 0.05) / (darker + 0.05): against white 1.05 / (x + 0.05),
  // against black (x + 0.05) / 0.05.
  const double x = luminance(colour) + 0.05;
  return x / 0.05 > 1.05 / x ? "#000000" : "#ffffff";
}

std::string_view schedule_colour(std::size_t index) {
  return kSchedules[index % kSchedules.size()];
}

std::string_view schedule_dash(std::size_t index) {
  return kDashes[index / kSchedules.size() % kDashes.size()];
}

std::string_view idle_colour(std::size_t cause) { return kIdle[cause % kIdle.size()]; }

}  // namespace dipsim
