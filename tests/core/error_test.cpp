// SPDX-License-Identifier: Apache-2.0
#include "sim/core/error.hpp"

#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <string>

namespace dipsim {
namespace {

using test::error_of;

TEST_CASE("an error kind is the exit code of the program and has a name") {
  CHECK(static_cast<int>(ErrorKind::Internal) == 1);
  CHECK(static_cast<int>(ErrorKind::Input) == 2);
  CHECK(static_cast<int>(ErrorKind::Infeasible) == 3);
  CHECK(static_cast<int>(ErrorKind::Environment) == 4);
  CHECK(static_cast<int>(ErrorKind::Regression) == 5);
  CHECK(name_of(ErrorKind::Internal) == "internal");
  CHECK(name_of(ErrorKind::Input) == "input");
  CHECK(name_of(ErrorKind::Infeasible) == "infeasible");
  CHECK(name_of(ErrorKind::Environment) == "environment");
  CHECK(name_of(ErrorKind::Regression) == "regression");
}

TEST_CASE("an error prints its place before its message, or the message alone") {
  const Error placed = error_of([] { fail_input("a.json: /x", "too large"); });
  CHECK(placed.kind() == ErrorKind::Input);
  CHECK(placed.where() == "a.json: /x");
  CHECK(placed.message() == "too large");
  CHECK(std::string(placed.what()) == "a.json: /x: too large");

  const Error nowhere = error_of([] { fail_infeasible("", "nothing fits"); });
  CHECK(nowhere.kind() == ErrorKind::Infeasible);
  CHECK(std::string(nowhere.what()) == "nothing fits");

  CHECK(error_of([] { fail_environment("gpu", "none"); }).kind() == ErrorKind::Environment);
}

TEST_CASE("a failed internal check names the file and evaluates its message only then") {
  int evaluated = 0;
  const auto message = [&] {
    ++evaluated;
    return std::string("the sky is green");
  };
  DIPSIM_CHECK(1 + 1 == 2, message());
  CHECK(evaluated == 0);
  const Error error = error_of([&] { DIPSIM_CHECK(1 + 1 == 3, message()); });
  CHECK(evaluated == 1);
  CHECK(error.kind() == ErrorKind::Internal);
  CHECK(error.where().find("error_test.cpp:") != std::string::npos);
  CHECK(error.message().find("the sky is green") == 0);
}

}  // namespace
}  // namespace dipsim
