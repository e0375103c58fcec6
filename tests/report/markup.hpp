// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim::test {

/// What is wrong with XML text, or HTML written like XML: tags that don't match, attributes without
/// quotes, bare '<', '>' and '&' in text or attributes; "" when nothing is.
inline std::string markup_fault(std::string_view text) {
  std::vector<std::string> open;
  std::size_t i = 0;
  const auto entity_ok = [&](std::size_t at) {
    const std::string_view rest = text.substr(at, 8);
    const std::vector<std::string_view> entities = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    return std::ranges::any_of(entities, [&](auto entity) { return rest.starts_with(entity); });
  };
  const auto fault = [&](const std::string& what) {
    return what + " near: " + std::string(text.substr(i > 30 ? i - 30 : 0, 80));
  };
  while (i < text.size()) {
    if (text[i] == '&' && !entity_ok(i)) {
      return fault("bare &");
    }
    if (text[i] == '>') {
      return fault("bare >");
    }
    if (text[i] != '<') {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    bool quoted = false;
    while (end < text.size() && (quoted || text[end] != '>')) {
      if (text[end] == '"') {
        quoted = !quoted;
      } else if (text[end] == '<') {
        return fault("< inside a tag");
      } else if (text[end] == '&' && !entity_ok(end)) {
        return fault("bare & in an attribute");
      } else if (text[end] == '=' && !quoted && text.substr(end + 1, 1) != "\"") {
        return fault("attribute without quotes");
      }
      ++end;
    }
    if (end == text.size()) {
      return fault("unfinished tag");
    }
    const std::string_view tag = text.substr(i + 1, end - i - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" /\n", 1)));
    if (name.starts_with("/")) {
      if (open.empty() || open.back() != name.substr(1)) {
        return fault("unexpected <" + name + ">");
      }
      open.pop_back();
    } else if (!tag.ends_with("/") && name != "!DOCTYPE" && name != "meta") {
      open.push_back(name);
    }
    i = end + 1;
    if (name == "style") {  // raw text up to its end tag
      i = text.find("</style>", i);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

inline std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

/// Whether a number that isn't one is printed.
inline bool prints_nan(std::string_view text) {
  const std::vector<std::string_view> words = {"nan ", "nan,", "nan\"", "nan<", "NaN",
                                               "inf ", "inf,", "inf\"", "inf<", "Infinity"};
  return std::ranges::any_of(words,
                             [&](auto word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace dipsim::test
