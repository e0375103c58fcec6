// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// At most `bytes` bytes of the text, cut between characters (UTF-8), with "…" where it was cut.
std::string shortened(std::string_view text, std::size_t bytes = 60);

/// The parts between separators; one part when there is none.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The candidate with the least edit distance to `word`; "" when there is no candidate.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// Text for an error about an unknown name: `unknown WHAT "x"; did you mean "y"? known: a, b, c`.
std::string unknown_name(std::string_view what, std::string_view word,
                         std::span<const std::string_view> candidates);

/// Index of `name` among `names`. Throws Input at `where` with unknown_name() when it is not there.
std::size_t index_of(std::string_view name, std::span<const std::string_view> names,
                     std::string_view what, const std::string& where);

/// Shortest text that reads back as the same number; never locale dependent.
std::string shortest(double value);

}  // namespace dipsim
