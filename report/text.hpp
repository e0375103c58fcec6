// SPDX-License-Identifier: Apache-2.0
// Small pieces of text that all reports share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dipsim {

/// Printed where a figure is unknown: reports never print NaN or infinity.
inline constexpr std::string_view kUnknown = "n/a";

/// `value` with a fixed number of decimals, never locale dependent, never "-0.0"; kUnknown where it
/// is not finite.
std::string fixed(double value, int decimals);

/// 0.1234 → "12.3": a share in percent, without the sign.
std::string percent(double share, int decimals = 1);

/// Decimals that give times up to `largest_ms` at least four significant digits.
int time_decimals(double largest_ms);

/// Decimals for memory: 2, more where 2 would show nothing.
int gib_decimals(double gib);

/// Code points of UTF-8 text: the columns that it takes on a terminal.
std::size_t display_width(std::string_view text);

/// Text on one line: every control character becomes a space.
std::string one_line(std::string_view text);

/// Text for XML and HTML, between tags or inside a quoted attribute. What XML can't carry (control
/// characters, broken UTF-8) becomes U+FFFD.
std::string escape_xml(std::string_view text);

/// Text for a paragraph or a table cell of Markdown, on one line.
std::string escape_markdown(std::string_view text);

/// One field of a CSV file (RFC 4180), quoted only where needed.
std::string csv_field(std::string_view text);

/// A JSON string with its quotes; broken UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

/// `name` as part of a file name: letters, digits, '-', '_', '.', other characters as '_', no
/// leading dot, at most 80 characters, never empty.
std::string file_stem(std::string_view name);

}  // namespace dipsim
