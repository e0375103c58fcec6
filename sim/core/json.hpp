// SPDX-License-Identifier: Apache-2.0
// A checked reader of JSON: every value is read with its type and range, every error names the file
// and the JSON pointer, and what nobody asked for is an error.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

class JsonObject;

/// One value inside a document, with its place. Valid while its JsonDocument lives.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& value, const std::string* file, std::string pointer)
      : value_(&value), file_(file), pointer_(std::move(pointer)) {}

  /// A whole number in [low, high]; 1.5, 1e300 and "1" are errors.
  [[nodiscard]] std::int64_t integer(
      std::int64_t low, std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  /// A finite number in [low, high].
  [[nodiscard]] double number(double low, double high = std::numeric_limits<double>::max()) const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::string text() const;
  /// A text that is one of `names`; returns its index.
  [[nodiscard]] std::size_t one_of(std::span<const std::string_view> names,
                                   std::string_view what) const;
  /// The elements of an array.
  [[nodiscard]] std::vector<JsonValue> items() const;
  [[nodiscard]] JsonObject object() const;

  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_number() const;

  /// The value at one pointer step below this one.
  [[nodiscard]] JsonValue child(const nlohmann::json& value, const std::string& step) const {
    return {value, file_, pointer_ + step};
  }

  /// Name of the document: its path, where it was read from a file.
  [[nodiscard]] const std::string& file() const { return *file_; }

  /// "file: /pointer".
  [[nodiscard]] std::string where() const;
  /// Throws Input at this place.
  [[noreturn]] void fail(std::string message) const;

  /// The value itself, for code that copies it unread.
  [[nodiscard]] const nlohmann::json& raw() const { return *value_; }

 private:
  const nlohmann::json* value_;
  const std::string* file_;
  std::string pointer_;
};

/// An object being read: remembers which keys were asked for.
class JsonObject {
 public:
  explicit JsonObject(JsonValue self) : self_(std::move(self)) {}

  /// The value of a key that must be there.
  [[nodiscard]] JsonValue at(std::string_view key);
  /// The value of a key that may be missing.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key);
  /// Marks a key as known without reading it.
  void ignore(std::string_view key);
  /// Keys in alphabetical order, all marked as known: for objects used as maps.
  [[nodiscard]] std::vector<std::string> keys();
  /// Call after the last key: throws Input naming the first key that nobody asked for and the
  /// nearest known one.
  void finish() const;

  [[nodiscard]] const JsonValue& self() const { return self_; }

 private:
  JsonValue self_;
  std::vector<std::string> asked_;
};

/// A parsed document. Throws Input on malformed text and on a number that overflows (with line and
/// column), on a duplicate key and nesting deeper than 64 (with the pointer), and on an empty text.
class JsonDocument {
 public:
  /// `file` is the name printed in errors.
  JsonDocument(std::string_view text, std::string file);
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  static JsonDocument from_file(const std::filesystem::path& path);

  [[nodiscard]] JsonValue root() const;

 private:
  std::unique_ptr<nlohmann::json> value_;
  std::unique_ptr<std::string> file_;
};

}  // namespace dipsim
