// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/core/error.hpp"
#include "sim/core/json.hpp"

namespace dipsim {

/// body(), which reads another document that `place` names: its errors carry that place too.
template <class Body>
auto read_behind(const JsonValue& place, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.kind(), place.where() + (error.where().empty() ? "" : ": " + error.where()),
                error.message());
  }
}

}  // namespace dipsim
