// SPDX-License-Identifier: Apache-2.0
// Texts in tests of readers: what a message says, and inputs with one thing changed.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace dipsim::test {

/// Whether `text` has this part; the text is printed where it has not.
inline bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) {
    MESSAGE(text);
  }
  return found;
}

/// `text` with the first `what`, which must be there, replaced.
inline std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

}  // namespace dipsim::test
