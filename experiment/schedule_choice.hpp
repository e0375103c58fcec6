// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/registry.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace dipsim {

/// A schedule with its options, written NAME or NAME:key=value:key=value.
struct ScheduleChoice {
  std::string label;  ///< as written; names the schedule in every result
  const ScheduleInfo* info = nullptr;
  PlannerOptions options;
  std::optional<RecomputeMode> recompute;  ///< none: the best of all uniform modes
};

/// Throws Input, with `where` as the place, on unknown names, keys and values, and on a key that
/// the schedule does not have.
ScheduleChoice parse_schedule(std::string_view text, const std::string& where);

/// One line per key that parse_schedule knows, for help texts.
std::string schedule_option_help();

}  // namespace dipsim
