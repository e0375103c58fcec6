// SPDX-License-Identifier: Apache-2.0
#include "schedulers/registry.hpp"

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace dipsim {

// The table: one line per schedule, the name of the function in dipsim::schedules that describes
// it.
#define DIPSIM_SCHEDULES(SCHEDULE) \
  SCHEDULE(gpipe)                  \
  SCHEDULE(one_f_one_b)            \
  SCHEDULE(interleaved)            \
  SCHEDULE(zb_h1)                  \
  SCHEDULE(zb_1p)                  \
  SCHEDULE(zb_2p)                  \
  SCHEDULE(zb_v)                   \
  SCHEDULE(dynapipe)               \
  SCHEDULE(megatron)               \
  SCHEDULE(nnscaler)               \
  SCHEDULE(optimus)                \
  SCHEDULE(disttrain)              \
  SCHEDULE(fsdp)                   \
  SCHEDULE(dip)                    \
  SCHEDULE(dip_plus)               \
  SCHEDULE(dip_zb)

namespace schedules {

#define DIPSIM_DECLARE(function) ScheduleInfo function();
DIPSIM_SCHEDULES(DIPSIM_DECLARE)
#undef DIPSIM_DECLARE

}  // namespace schedules

std::span<const ScheduleInfo> all_schedules() {
#define DIPSIM_CALL(function) schedules::function(),
  static const std::array table = {DIPSIM_SCHEDULES(DIPSIM_CALL)};
#undef DIPSIM_CALL
  return table;
}

const ScheduleInfo& find_schedule(std::string_view name) {
  const auto schedules = all_schedules();
  const auto found = std::ranges::find(schedules, name, &ScheduleInfo::name);
  if (found == schedules.end()) {
    std::vector<std::string_view> names;
    for (const ScheduleInfo& schedule : schedules) {
      names.push_back(schedule.name);
    }
    fail_input("schedule", unknown_name("schedule", name, names));
  }
  return *found;
}

}  // namespace dipsim
