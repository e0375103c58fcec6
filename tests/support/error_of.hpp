// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/core/error.hpp"

#include <stdexcept>

namespace dipsim::test {

/// The Error that `body` throws. A body that throws nothing, or anything else, fails the test case.
template <class Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  throw std::logic_error("no error was thrown");
}

}  // namespace dipsim::test
