// SPDX-License-Identifier: Apache-2.0
#include "report/condition.hpp"

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace dipsim {

using nlohmann::json;

namespace {

constexpr std::string_view kPlace = "--fail-if";

/// Reads the condition from left to right and computes on the way. Without a result it only checks
/// the syntax. To check names alone, every value counts as 1.
class Reader {
 public:
  enum class Values : std::uint8_t { Used, AllOne };

  Reader(std::string_view text, const json* result, Values values)
      : text_(text), result_(result), values_(values) {}

  bool condition() {
    const double left = sum();
    skip_spaces();
    const std::string_view compare = comparison();
    const double right = sum();
    skip_spaces();
    if (at_ < text_.size()) {
      fail("nothing may follow the second expression");
    }
    return holds(left, compare, right);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    fail_input(fmt::format("{}: column {}", kPlace, at_ + 1),
               fmt::format("{} in: {}", what, text_));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool take(char c) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }

  std::string_view comparison() {
    constexpr std::array<std::string_view, 6> kComparisons = {"<=", ">=", "==", "!=", "<", ">"};
    for (const std::string_view compare : kComparisons) {
      if (text_.substr(at_).starts_with(compare)) {
        at_ += compare.size();
        return compare;
      }
    }
    fail("one of < <= > >= == != is needed");
  }

  static bool holds(double left, std::string_view compare, double right) {
    if (compare == "<") {
      return left < right;
    }
    if (compare == "<=") {
      return left <= right;
    }
    if (compare == ">") {
      return left > right;
    }
    if (compare == ">=") {
      return left >= right;
    }
    return (left == right) == (compare == "==");
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take('+')) {
        value += product();
      } else if (take('-')) {
        value -= product();
      } else {
        return value;
      }
    }
  }

  double product() {
    double value = factor();
    for (;;) {
      if (take('*')) {
        value *= factor();
      } else if (take('/')) {
        const double divisor = factor();
        if (divisor == 0.0 && values_ == Values::Used) {
          fail("division by zero");
        }
        value /= divisor;
      } else {
        return value;
      }
    }
  }

  double factor() {
    if (++depth_ > kMaxDepth) {
      fail("nested too deeply");
    }
    const double value = signed_factor();
    --depth_;
    return value;
  }

  double signed_factor() {
    if (take('-')) {
      return -factor();
    }
    if (take('(')) {
      const double value = sum();
      if (!take(')')) {
        fail("a ) is needed");
      }
      return value;
    }
    skip_spaces();
    if (at_ < text_.size() && (text_[at_] == '"' || is_letter(text_[at_]))) {
      return path();
    }
    return number();
  }

  double number() {
    double value = 0.0;
    const char* from = text_.data() + at_;
    const auto [end, code] = std::from_chars(from, text_.data() + text_.size(), value);
    if (code != std::errc{} || !std::isfinite(value)) {
      fail("a number, a \"schedule\" or a key is needed");
    }
    at_ += static_cast<std::size_t>(end - from);
    return value;
  }

  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

  std::string key() {
    const std::size_t from = at_;
    while (at_ < text_.size() &&
           (is_letter(text_[at_]) || (text_[at_] >= '0' && text_[at_] <= '9'))) {
      ++at_;
    }
    if (at_ == from) {
      fail("a key is needed after the dot");
    }
    return std::string(text_.substr(from, at_ - from));
  }

  double path() {
    const json* value = result_;
    if (take('"')) {
      const std::size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) {
        fail("the closing \" is missing");
      }
      const std::string name(text_.substr(at_, end - at_));
      at_ = end + 1;
      value = value == nullptr ? nullptr : schedule(name);
    } else {
      value = member(value, key());
    }
    while (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      value = member(value, key());
    }
    if (value == nullptr) {
      return 1.0;
    }
    if (!value->is_number()) {
      fail("this is no number; add a key such as .iteration_time_ms.mean");
    }
    return values_ == Values::AllOne ? 1.0 : value->get<double>();
  }

  [[nodiscard]] const json* schedule(const std::string& name) const {
    std::vector<std::string_view> known;
    for (const json& entry : result_->at("schedules")) {
      known.push_back(entry.at("name").get_ref<const std::string&>());
      if (known.back() == name) {
        return &entry;
      }
    }
    fail(unknown_name("schedule", name, known));
  }

  [[nodiscard]] const json* member(const json* value, const std::string& key) const {
    if (value == nullptr) {
      return nullptr;
    }
    if (value->is_array()) {
      std::size_t index = value->size();
      std::from_chars(key.data(), key.data() + key.size(), index);
      if (index >= value->size()) {
        fail(fmt::format("the list has elements 0 to {}, not {}", value->size() - 1, key));
      }
      return &(*value)[index];
    }
    if (!value->is_object()) {
      fail(fmt::format("there is no key \"{}\" below a plain value", key));
    }
    const auto found = value->find(key);
    if (found == value->end()) {
      std::vector<std::string_view> known;
      for (const auto& [name, unused] : value->items()) {
        known.push_back(name);
      }
      fail(unknown_name("key", key, known));
    }
    return &*found;
  }

  static constexpr int kMaxDepth = 64;

  std::string_view text_;
  const json* result_;
  Values values_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Condition::Condition(std::string text) : text_(std::move(text)) {
  static_cast<void>(Reader(text_, nullptr, Reader::Values::AllOne).condition());
}

bool Condition::holds(std::string_view result) const {
  const json parsed = json::parse(result);
  return Reader(text_, &parsed, Reader::Values::Used).condition();
}

void Condition::check(std::string_view result) const {
  const json parsed = json::parse(result);
  static_cast<void>(Reader(text_, &parsed, Reader::Values::AllOne).condition());
}

}  // namespace dipsim
