// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace dipsim {

/// A comparison of two expressions over a result, for gates in CI:
///   "dip".iteration_time_ms.mean > 0.95 * "1f1b".iteration_time_ms.mean
/// A text in quotes is a schedule; a name without quotes is a key of the result itself; keys follow
/// after dots, list elements by their number ("dip".peak_memory_gib.0). Numbers, + - * /,
/// parentheses, and one of < <= > >= == !=.
class Condition {
 public:
  /// Throws Input with the column of the mistake.
  explicit Condition(std::string text);

  /// `result` is the text of result.json. Throws Input on an unknown schedule or key, naming the
  /// nearest one, on a value that is no number and on a division by zero.
  [[nodiscard]] bool holds(std::string_view result) const;

  /// Throws as holds() does on names that are not in `result`, whatever the values there.
  void check(std::string_view result) const;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace dipsim
