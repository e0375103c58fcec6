// SPDX-License-Identifier: Apache-2.0
#include "sim/core/json.hpp"

#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

namespace dipsim {

using nlohmann::json;

namespace {

constexpr int kMaxDepth = 64;

/// What the user wrote, cut to one short line.
std::string echo(const json& value) {
  return shortened(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

/// RFC 6901 escaping of one pointer step.
std::string step(std::string_view key) {
  std::string out = "/";
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  return fmt::format("line {}, column {}", line, column);
}

/// nlohmann's message without its "[json.exception…]" head and its own position.
std::string reason(std::string message) {
  for (const std::string_view mark : {"syntax error", "number overflow"}) {
    const std::size_t at = message.find(mark);
    if (at != std::string::npos) {
      message = message.substr(at);
      break;
    }
  }
  const std::size_t detail = message.find(" - ");
  if (message.starts_with("syntax error") && detail != std::string::npos) {
    message = "syntax error: " + message.substr(detail + 3);
  }
  // The message may quote bytes of the file that are no UTF-8.
  const std::string readable = json(message).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(readable).get<std::string>();
}

/// The place of the literal that a "number overflow parsing '1e400'" message quotes.
std::string place_of_overflow(std::string_view text, std::string_view message) {
  const std::size_t from = message.find('\'');
  const std::size_t to = message.rfind('\'');
  if (from == std::string_view::npos || to <= from) {
    return line_and_column(text, 0);
  }
  const std::string_view literal = message.substr(from + 1, to - from - 1);
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (quoted && text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && text.substr(at).starts_with(literal)) {
      return line_and_column(text, at + 1);
    }
  }
  return line_and_column(text, 0);
}

/// Follows the parser through the document: finds duplicate keys, and knows the place where they
/// are.
class ParserWatch {
 public:
  /// A rule of ours that the text breaks, with the JSON pointer of the place.
  struct Rejected {
    std::string pointer;
    std::string message;
  };

  bool operator()(int /*depth*/, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        open(event == json::parse_event_t::array_start);
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        levels_.pop_back();
        count_element();
        break;
      case json::parse_event_t::value:
        count_element();
        break;
      case json::parse_event_t::key:
        enter_key(parsed.get_ref<const std::string&>());
        break;
    }
    return true;
  }

 private:
  struct Level {
    bool array = false;
    std::size_t index = 0;
    std::string key;
    std::set<std::string> keys;
  };

  void open(bool array) {
    if (levels_.size() >= kMaxDepth) {
      throw Rejected{pointer(), fmt::format("nested deeper than {} levels", kMaxDepth)};
    }
    levels_.push_back({.array = array, .index = 0, .key = {}, .keys = {}});
  }

  void count_element() {
    if (!levels_.empty() && levels_.back().array) {
      ++levels_.back().index;
    }
  }

  void enter_key(const std::string& key) {
    if (!levels_.back().keys.insert(key).second) {
      levels_.back().key.clear();
      throw Rejected{pointer(), fmt::format("duplicate key \"{}\"", shortened(key))};
    }
    levels_.back().key = key;
  }

  [[nodiscard]] std::string pointer() const {
    std::string out;
    for (const Level& level : levels_) {
      if (level.array) {
        out += fmt::format("/{}", level.index);
      } else if (!level.key.empty()) {
        out += step(level.key);
      }
    }
    return out.empty() ? "/" : out;
  }

  std::vector<Level> levels_;
};

std::unique_ptr<json> parse(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    fail_input(file, "empty; a JSON document is needed");
  }
  // The parser takes a NUL byte for the end of the text.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail_input(fmt::format("{}: {}", file, line_and_column(text, nul + 1)), "a NUL byte");
  }
  ParserWatch watch;
  try {
    return std::make_unique<json>(json::parse(text.begin(), text.end(), std::ref(watch)));
  } catch (const json::parse_error& error) {
    fail_input(fmt::format("{}: {}", file, line_and_column(text, error.byte)),
               reason(error.what()));
  } catch (const json::exception& error) {
    const std::string message = reason(error.what());
    fail_input(fmt::format("{}: {}", file, place_of_overflow(text, message)), message);
  } catch (const ParserWatch::Rejected& rejected) {
    fail_input(fmt::format("{}: {}", file, rejected.pointer), rejected.message);
  }
}

}  // namespace

std::string JsonValue::where() const { return *file_ + ": " + (pointer_.empty() ? "/" : pointer_); }

void JsonValue::fail(std::string message) const { fail_input(where(), std::move(message)); }

std::int64_t JsonValue::integer(std::int64_t low, std::int64_t high) const {
  const auto refuse = [&] {
    const std::string range = high == std::numeric_limits<std::int64_t>::max()
                                  ? fmt::format("of at least {}", low)
                                  : fmt::format("from {} to {}", low, high);
    fail(fmt::format("{} is not a whole number {}", echo(*value_), range));
  };
  if (!value_->is_number_integer()) {
    refuse();
  }
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    refuse();
  }
  const auto number = value_->get<std::int64_t>();
  if (number < low || number > high) {
    refuse();
  }
  return number;
}

double JsonValue::number(double low, double high) const {
  const double number = value_->is_number() ? value_->get<double>() : std::nan("");
  if (!std::isfinite(number) || number < low || number > high) {
    const std::string range = high == std::numeric_limits<double>::max()
                                  ? fmt::format("of at least {}", low)
                                  : fmt::format("from {} to {}", low, high);
    fail(fmt::format("{} is not a number {}", echo(*value_), range));
  }
  return number;
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean()) {
    fail(fmt::format("{} is not true or false", echo(*value_)));
  }
  return value_->get<bool>();
}

std::string JsonValue::text() const {
  if (!value_->is_string()) {
    fail(fmt::format("{} is not a text in quotes", echo(*value_)));
  }
  return value_->get<std::string>();
}

std::size_t JsonValue::one_of(std::span<const std::string_view> names,
                              std::string_view what) const {
  return index_of(text(), names, what, where());
}

std::vector<JsonValue> JsonValue::items() const {
  if (!value_->is_array()) {
    fail(fmt::format("{} is not a list [ … ]", echo(*value_)));
  }
  std::vector<JsonValue> out;
  out.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    out.emplace_back((*value_)[i], file_, fmt::format("{}/{}", pointer_, i));
  }
  return out;
}

JsonObject JsonValue::object() const {
  if (!value_->is_object()) {
    fail(fmt::format("{} is not an object {{ … }}", echo(*value_)));
  }
  return JsonObject(*this);
}

bool JsonValue::is_object() const { return value_->is_object(); }

bool JsonValue::is_array() const { return value_->is_array(); }

bool JsonValue::is_number() const { return value_->is_number(); }

std::optional<JsonValue> JsonObject::find(std::string_view key) {
  asked_.emplace_back(key);
  const auto found = self_.raw().find(std::string(key));
  if (found == self_.raw().end()) {
    return std::nullopt;
  }
  return self_.child(*found, step(key));
}

JsonValue JsonObject::at(std::string_view key) {
  std::optional<JsonValue> found = find(key);
  if (!found) {
    self_.fail(fmt::format("key \"{}\" is missing", key));
  }
  return *std::move(found);
}

void JsonObject::ignore(std::string_view key) { asked_.emplace_back(key); }

std::vector<std::string> JsonObject::keys() {
  std::vector<std::string> out;
  for (const auto& [key, value] : self_.raw().items()) {
    out.push_back(key);
  }
  asked_.insert(asked_.end(), out.begin(), out.end());
  return out;
}

void JsonObject::finish() const {
  for (const auto& [key, value] : self_.raw().items()) {
    if (std::ranges::find(asked_, key) == asked_.end()) {
      const std::vector<std::string_view> known(asked_.begin(), asked_.end());
      self_.child(value, step(key)).fail(unknown_name("key", key, known));
    }
  }
}

JsonDocument::JsonDocument(std::string_view text, std::string file)
    : value_(parse(text, file)), file_(std::make_unique<std::string>(std::move(file))) {}

JsonDocument::~JsonDocument() = default;
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;

JsonDocument JsonDocument::from_file(const std::filesystem::path& path) {
  return {read_file(path), path.string()};
}

JsonValue JsonDocument::root() const { return {*value_, file_.get(), ""}; }

}  // namespace dipsim
