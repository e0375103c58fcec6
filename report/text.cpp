// SPDX-License-Identifier: Apache-2.0
#include "report/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dipsim {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::size_t kLongestStem = 80;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Bytes that the first byte of a sequence announces, 0 where it can't be first.
std::size_t announced_length(unsigned lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return 0;
  }
  if (lead >= 0xF0) {
    return 4;
  }
  return lead >= 0xE0 ? 3 : 2;
}

/// Bytes of the well-formed UTF-8 sequence at the start of `text`, 0 where there is none (Unicode
/// standard, table 3-7) or where XML 1.0 excludes its character (U+FFFE and U+FFFF).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = announced_length(lead);
  if (length <= 1 || text.size() < length) {
    return text.size() < length ? 0 : length;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) {
      return 0;
    }
  }
  const unsigned second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool above = lead == 0xF4 && second > 0x8F;
  const bool noncharacter = text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
  return overlong || surrogate || above || noncharacter ? 0 : length;
}

bool is_file_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) {
    return std::string(kUnknown);
  }
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.front() == '-' && text.find_first_not_of("-0.") == std::string::npos) {
    text.erase(0, 1);
  }
  return text;
}

std::string percent(double share, int decimals) { return fixed(share * 100.0, decimals); }

int time_decimals(double largest_ms) {
  int decimals = 1;
  for (double limit = 100.0; decimals < 6 && largest_ms < limit; limit /= 10.0) {
    ++decimals;
  }
  return decimals;
}

int gib_decimals(double gib) { return gib >= 1.0 || gib == 0.0 ? 2 : 5; }

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::string one_line(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, is_control, ' ');
  return out;
}

std::string escape_xml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = sequence_length(text);
    if (length == 0 || (is_control(c) && c != '\n' && c != '\t')) {
      out += kReplacement;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("\\`*_[]|#~").find(c) != std::string_view::npos) {
        out += '\\';
      }
      out += c;
    }
  }
  return out;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c;
    if (c == '"') {
      out += '"';
    }
  }
  return out + '"';
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string file_stem(std::string_view name) {
  std::string out(name.substr(0, kLongestStem));
  std::ranges::replace_if(out, [](char c) { return !is_file_character(c); }, '_');
  if (out.empty()) {
    return "schedule";
  }
  if (out.front() == '.') {
    out.front() = '_';
  }
  return out;
}

}  // namespace dipsim
