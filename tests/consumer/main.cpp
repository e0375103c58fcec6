// SPDX-License-Identifier: Apache-2.0
// Uses installed headers and installed libraries; exit code 0 when both work.

#include <limits>

#include <sim/core/error.hpp>
#include <sim/core/units.hpp>

int main() {
  const bool rounds = dipsim::round_to_bytes(1.5) == dipsim::Bytes{2};
  try {
    dipsim::round_to_duration(std::numeric_limits<double>::quiet_NaN());
  } catch (const dipsim::Error& error) {
    return rounds && error.kind() == dipsim::ErrorKind::Input ? 0 : 1;
  }
  return 1;
}
