// SPDX-License-Identifier: Apache-2.0
#include "report/svg.hpp"

#include "report/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

namespace dipsim {

namespace {

constexpr std::string_view kFonts =
    "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif";

std::string number(double pixels) { return svg_number(pixels); }

/// `class="ink" fill="#1d2329"`; colours that no page changes have no class.
std::string paint(std::string_view attribute, Theme theme) {
  if (theme.css_class.empty()) {
    return fmt::format(R"({}="{}")", attribute, theme.colour);
  }
  return fmt::format(R"(class="{}" {}="{}")", theme.css_class, attribute, theme.colour);
}

std::string stroke(Theme theme, LineStyle style) {
  std::string out = paint("stroke", theme);
  if (style.width != 1.0) {
    out += fmt::format(R"( stroke-width="{}")", number(style.width));
  }
  if (!style.dash.empty()) {
    out += fmt::format(R"( stroke-dasharray="{}")", style.dash);
  }
  return out;
}

constexpr std::array<std::string_view, 3> kAnchors = {"", R"( text-anchor="middle")",
                                                      R"( text-anchor="end")"};

}  // namespace

std::string svg_number(double pixels) {
  if (!std::isfinite(pixels)) {
    return "0";
  }
  std::string text = fixed(pixels, 2);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') {
    text.pop_back();
  }
  return text;
}

double text_width(std::string_view text, double size) {
  // DejaVu Sans, the widest of the fonts asked for, averages 0.59 em over lower case and digits.
  return 0.6 * size * static_cast<double>(display_width(text));
}

Svg::Svg(double width, double height, std::string_view title) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"{2}\" role=\"img\">\n<title>{3}</title>\n",
      number(width), number(height), kFonts, escape_xml(one_line(title)));
  rect(0.0, 0.0, width, height, kPaper);
}

void Svg::rect(double x, double y, double width, double height, Theme fill,
               std::string_view tooltip) {
  fmt::format_to(std::back_inserter(out_), R"(<rect x="{}" y="{}" width="{}" height="{}" {})",
                 number(x), number(y), number(width), number(height), paint("fill", fill));
  if (tooltip.empty()) {
    out_ += "/>\n";
  } else {
    fmt::format_to(std::back_inserter(out_), "><title>{}</title></rect>\n",
                   escape_xml(one_line(tooltip)));
  }
}

void Svg::line(double x1, double y1, double x2, double y2, Theme theme, LineStyle style) {
  fmt::format_to(std::back_inserter(out_), "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n",
                 number(x1), number(y1), number(x2), number(y2), stroke(theme, style));
}

void Svg::text(double x, double y, std::string_view text, const TextStyle& style) {
  fmt::format_to(std::back_inserter(out_),
                 "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{}{} {}>{}</text>\n", number(x),
                 number(y), number(style.size), kAnchors[static_cast<std::size_t>(style.anchor)],
                 style.bold ? R"( font-weight="600")" : "", paint("fill", style.theme),
                 escape_xml(one_line(text)));
}

void Svg::circle(double x, double y, double radius, Theme fill) {
  fmt::format_to(std::back_inserter(out_), "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>\n", number(x),
                 number(y), number(radius), paint("fill", fill));
}

void Svg::area(std::string_view data, Theme fill, double opacity) {
  fmt::format_to(std::back_inserter(out_), R"(<path d="{}" {})", data, paint("fill", fill));
  if (opacity != 1.0) {
    fmt::format_to(std::back_inserter(out_), R"( fill-opacity="{}")", number(opacity));
  }
  out_ += "/>\n";
}

void Svg::curve(std::string_view data, Theme theme, LineStyle style) {
  fmt::format_to(std::back_inserter(out_), "<path d=\"{}\" fill=\"none\" {}/>\n", data,
                 stroke(theme, style));
}

void Svg::begin_labels(double size, std::string_view colour) {
  fmt::format_to(
      std::back_inserter(out_),
      "<g font-size=\"{}\" text-anchor=\"middle\" fill=\"{}\" pointer-events=\"none\">\n",
      number(size), colour);
}

void Svg::label(double x, double y, std::string_view text) {
  fmt::format_to(std::back_inserter(out_), "<text x=\"{}\" y=\"{}\">{}</text>\n", number(x),
                 number(y), escape_xml(one_line(text)));
}

void Svg::end_labels() { out_ += "</g>\n"; }

std::string Svg::finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace dipsim
