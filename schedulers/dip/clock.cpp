// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/clock.hpp"

namespace dipsim::dip {

Nanoseconds retime(PassClock& clock, std::span<const Index> sequence,
                   std::span<const Nanoseconds> durations) {
  clock.reset();
  for (const Index pass : sequence) {
    clock.run(pass, durations[pass], [](const Hop&, Nanoseconds, bool) {});
  }
  return clock.makespan();
}

}  // namespace dipsim::dip
