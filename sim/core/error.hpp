// SPDX-License-Identifier: Apache-2.0
// The one family of errors, and the always-on checks of internal rules.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace dipsim {

/// What went wrong; the value is the exit code of the program.
enum class ErrorKind {
  Internal = 1,     ///< a rule of the program itself is broken: a defect of dipsim
  Input = 2,        ///< the user's input is malformed or illegal
  Infeasible = 3,   ///< the input is legal but has no answer: nothing fits
  Environment = 4,  ///< the machine lacks something: a GPU, a library, disk space
  Regression = 5,   ///< a --fail-if condition holds
};

/// "input", "infeasible", … as printed in JSON.
std::string_view name_of(ErrorKind kind);

/// Thrown by every folder; caught and printed by cli only.
class Error : public std::runtime_error {
 public:
  /// where: file and JSON pointer, flag, or task ("" when there is no place).
  /// message: what is wrong, the value, what is allowed and the nearest legal value.
  Error(ErrorKind kind, std::string where, std::string message);

  [[nodiscard]] ErrorKind kind() const { return kind_; }

  [[nodiscard]] const std::string& where() const { return where_; }

  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  ErrorKind kind_;
  std::string where_;
  std::string message_;
};

[[noreturn]] void fail_input(std::string where, std::string message);
[[noreturn]] void fail_infeasible(std::string where, std::string message);
[[noreturn]] void fail_environment(std::string where, std::string message);
[[noreturn]] void fail_internal(const char* file, int line, std::string message);

/// Always-on check of an internal rule; `message` is only evaluated on failure.
#define DIPSIM_CHECK(condition, message)                      \
  do {                                                        \
    if (!(condition)) {                                       \
      ::dipsim::fail_internal(__FILE__, __LINE__, (message)); \
    }                                                         \
  } while (false)

}  // namespace dipsim
