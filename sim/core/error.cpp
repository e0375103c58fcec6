// SPDX-License-Identifier: Apache-2.0
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <utility>

namespace dipsim {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Internal:
      return "internal";
    case ErrorKind::Input:
      return "input";
    case ErrorKind::Infeasible:
      return "infeasible";
    case ErrorKind::Environment:
      return "environment";
    case ErrorKind::Regression:
      return "regression";
  }
  return "internal";
}

Error::Error(ErrorKind kind, std::string where, std::string message)
    : std::runtime_error(where.empty() ? message : where + ": " + message),
      kind_(kind),
      where_(std::move(where)),
      message_(std::move(message)) {}

void fail_input(std::string where, std::string message) {
  throw Error(ErrorKind::Input, std::move(where), std::move(message));
}

void fail_infeasible(std::string where, std::string message) {
  throw Error(ErrorKind::Infeasible, std::move(where), std::move(message));
}

void fail_environment(std::string where, std::string message) {
  throw Error(ErrorKind::Environment, std::move(where), std::move(message));
}

void fail_internal(const char* file, int line, std::string message) {
  throw Error(ErrorKind::Internal, fmt::format("{}:{}", file, line),
              std::move(message) + " (a defect of dipsim, please report it)");
}

}  // namespace dipsim
