// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/xml.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace dipsim {

namespace {

constexpr int kMaxDepth = 64;

struct Entity {
  std::string_view name;
  char character;
};

constexpr std::array<Entity, 5> kEntities = {
    {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}};

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
         c == ':';
}

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  XmlElement document() {
    skip_between();
    if (at_end()) {
      fail("no element; the file is empty");
    }
    XmlElement root = element(0);
    skip_between();
    if (!at_end()) {
      fail("something follows the root element");
    }
    return root;
  }

 private:
  [[nodiscard]] bool at_end() const { return text_.empty(); }

  [[noreturn]] void fail(const std::string& message) const { fail_at(line_, column_, message); }

  [[noreturn]] void fail_at(int line, int column, const std::string& message) const {
    fail_input(fmt::format("{}:{}:{}", file_, line, column), message);
  }

  char next() {
    if (at_end()) {
      fail("the file ends here; is it cut off?");
    }
    const char c = text_.front();
    text_.remove_prefix(1);
    column_ = c == '\n' ? 1 : column_ + 1;
    line_ += c == '\n' ? 1 : 0;
    return c;
  }

  bool take(std::string_view wanted) {
    if (!text_.starts_with(wanted)) {
      return false;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      next();
    }
    return true;
  }

  void expect(std::string_view wanted) {
    if (!take(wanted)) {
      fail(at_end() ? "the file ends here; is it cut off?"
                    : fmt::format("\"{}\" is expected here", wanted));
    }
  }

  bool skip_space() {
    const std::size_t before = text_.size();
    while (!at_end() && std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
      next();
    }
    return text_.size() < before;
  }

  /// Space, comments and the XML declaration.
  void skip_between() {
    for (bool more = true; more;) {
      skip_space();
      more = false;
      for (const auto& [open, close] : {std::pair{"<!--", "-->"}, std::pair{"<?", "?>"}}) {
        if (take(open)) {
          while (!take(close)) {
            next();
          }
          more = true;
        }
      }
    }
  }

  std::string name() {
    std::string out;
    while (!at_end() && is_name(text_.front())) {
      out += next();
    }
    if (out.empty()) {
      fail(at_end() ? "the file ends here; is it cut off?" : "a name is expected here");
    }
    return out;
  }

  char character() {
    if (text_.front() != '&') {
      return next();
    }
    for (const Entity& entity : kEntities) {
      if (take(entity.name)) {
        return entity.character;
      }
    }
    fail("unknown entity; known: &lt; &gt; &amp; &quot; &apos;");
  }

  std::string quoted() {
    const int line = line_;
    const int column = column_;
    const bool single = take("'");
    if (!single) {
      expect("\"");
    }
    const char close = single ? '\'' : '"';
    std::string out;
    while (!at_end() && text_.front() != close) {
      if (text_.front() == '<') {
        fail("\"<\" inside a value");
      }
      out += character();
    }
    if (at_end()) {
      fail_at(line, column, "this quote is never closed; is the file cut off?");
    }
    next();
    return out;
  }

  void attributes(XmlElement& element) {
    while (skip_space() && !at_end() && is_name(text_.front())) {
      const int line = line_;
      const int column = column_;
      std::string key = name();
      if (element.find(key) != nullptr) {
        fail_at(line, column, fmt::format("attribute \"{}\" a second time", key));
      }
      skip_space();
      expect("=");
      skip_space();
      element.attributes.emplace_back(std::move(key), quoted());
    }
  }

  XmlElement element(int depth) {
    XmlElement out;
    out.line = line_;
    out.column = column_;
    if (depth > kMaxDepth) {
      fail(fmt::format("elements are nested deeper than {}", kMaxDepth));
    }
    expect("<");
    out.name = name();
    attributes(out);
    if (take("/>")) {
      return out;
    }
    expect(">");
    for (skip_between(); !text_.starts_with("</"); skip_between()) {
      if (at_end()) {
        fail_at(out.line, out.column,
                fmt::format("<{}> is never closed; is the file cut off?", out.name));
      }
      if (text_.front() != '<') {
        fail("text between elements");
      }
      out.children.push_back(element(depth + 1));
    }
    close(out);
    return out;
  }

  void close(const XmlElement& element) {
    const int line = line_;
    const int column = column_;
    expect("</");
    const std::string closed = name();
    if (closed != element.name) {
      fail_at(line, column,
              fmt::format("</{}> closes <{}> of line {}", closed, element.name, element.line));
    }
    skip_space();
    expect(">");
  }

  std::string_view text_;
  const std::string& file_;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace

const std::string* XmlElement::find(std::string_view attribute) const {
  const auto found =
      std::ranges::find(attributes, attribute, [](const auto& a) { return a.first; });
  return found == attributes.end() ? nullptr : &found->second;
}

XmlElement parse_xml(std::string_view text, const std::string& file) {
  return XmlReader(text, file).document();
}

}  // namespace dipsim
