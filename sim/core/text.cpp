// SPDX-License-Identifier: Apache-2.0
#include "sim/core/text.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <vector>

namespace dipsim {

namespace {

/// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) {
    return std::string(text);
  }
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (bytes > 0 && continues(bytes)) {
    --bytes;
  }
  return std::string(text.substr(0, bytes)) + "…";
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t to = text.find(separator);
    parts.push_back(text.substr(0, to));
    if (to == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(to + 1);
  }
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  const auto closer = [&](std::string_view a, std::string_view b) {
    return edit_distance(word, a) < edit_distance(word, b);
  };
  const auto best = std::min_element(candidates.begin(), candidates.end(), closer);
  return best == candidates.end() ? std::string_view{} : *best;
}

std::string unknown_name(std::string_view what, std::string_view word,
                         std::span<const std::string_view> candidates) {
  const std::string shown = shortened(word);
  if (candidates.empty()) {
    return fmt::format("unknown {} \"{}\"; none is known here", what, shown);
  }
  return fmt::format("unknown {} \"{}\"; did you mean \"{}\"? known: {}", what, shown,
                     nearest(shown, candidates), fmt::join(candidates, ", "));
}

std::size_t index_of(std::string_view name, std::span<const std::string_view> names,
                     std::string_view what, const std::string& where) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    fail_input(where, unknown_name(what, name, names));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

}  // namespace dipsim
