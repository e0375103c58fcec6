// SPDX-License-Identifier: Apache-2.0
// A small writer of SVG pictures. Equal calls give equal bytes. Colours are presentation
// attributes, so that a page around the picture can restyle the classes (report.html does for dark
// mode).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dipsim {

/// Class and colour of a part whose colour a page may change.
struct Theme {
  std::string_view css_class;
  std::string_view colour;
};

inline constexpr Theme kInk = {"ink", "#1d2329"};  ///< text
inline constexpr Theme kDim = {"dim", "#5c6670"};  ///< secondary text
inline constexpr Theme kPaper = {"paper", "#ffffff"};
inline constexpr Theme kGround = {"ground", "#eceff2"};  ///< free time in a row
inline constexpr Theme kGrid = {"grid", "#d5dade"};      ///< thin lines
inline constexpr Theme kAxis = {"axis", "#8a949e"};      ///< thick lines
inline constexpr Theme kAlarm = {"alarm", "#c62828"};    ///< limits, what doesn't fit

enum class Anchor : std::uint8_t { Start, Middle, End };

struct TextStyle {
  double size = 13.0;
  Anchor anchor = Anchor::Start;
  bool bold = false;
  Theme theme = kInk;
};

struct LineStyle {
  double width = 1.0;
  std::string_view dash = {};  ///< e.g. "4 3"; "" for a solid line
};

/// Pixels as SVG writes them: at most two decimals, no trailing zeros, 0 where not finite.
std::string svg_number(double pixels);

/// Pixels that a text takes at most at this size, in the fonts that pictures ask for.
double text_width(std::string_view text, double size);

class Svg {
 public:
  /// A picture of width × height pixels on paper; `title` is its name for screen readers.
  Svg(double width, double height, std::string_view title);

  /// `tooltip` shows in browsers when the pointer rests on the rectangle.
  void rect(double x, double y, double width, double height, Theme fill,
            std::string_view tooltip = {});
  void line(double x1, double y1, double x2, double y2, Theme theme, LineStyle style = {});
  void text(double x, double y, std::string_view text, const TextStyle& style = {});
  void circle(double x, double y, double radius, Theme fill);

  /// An area; `data` is path data.
  void area(std::string_view data, Theme fill, double opacity = 1.0);
  /// A stroke along path data.
  void curve(std::string_view data, Theme theme, LineStyle style = {});

  /// Opens a group in which texts are centred and have this size and colour: label() needs a few
  /// bytes per text.
  void begin_labels(double size, std::string_view colour);
  void label(double x, double y, std::string_view text);
  void end_labels();

  /// The whole picture; nothing can be added after it.
  std::string finish() &&;

 private:
  std::string out_;
};

}  // namespace dipsim
