// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/options.hpp"

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string>

namespace dipsim {

namespace {

void require(bool holds, std::string_view field, const std::string& message) {
  if (!holds) {
    fail_input(fmt::format("dip: {}", field), message);
  }
}

}  // namespace

void validate(const DipOptions& options) {
  const auto& sizes = options.slice_sizes;
  require(!sizes.empty() && sizes.front() >= 1 &&
              std::ranges::adjacent_find(sizes, std::greater_equal{}) == sizes.end(),
          "slice_sizes",
          fmt::format("[{}]; allowed: one or more sizes of at least 1, ascending",
                      fmt::join(sizes, ", ")));
  require(options.efficiency > 0.0 && options.efficiency <= 1.0, "efficiency",
          shortest(options.efficiency) + "; allowed: above 0, up to 1");
  require(options.max_segments >= 1, "max_segments",
          fmt::format("{}; allowed: 1 or more", options.max_segments));
  require(!options.memory_levels.empty(), "memory_levels",
          "empty; allowed: one or more of keep, selective, full");
  for (const RecomputeMode mode : options.memory_levels) {
    require(mode <= RecomputeMode::Full, "memory_levels",
            fmt::format("{}; allowed: keep, selective, full", name_of(mode)));
  }
  require(
      std::ranges::all_of(options.soft_shares, [](double s) { return s > 0.0 && s <= 1.0; }),
      "soft_shares",
      fmt::format("[{}]; allowed: shares above 0, up to 1", fmt::join(options.soft_shares, ", ")));
  require(!options.weight_backlogs.empty() &&
              std::ranges::all_of(options.weight_backlogs, [](int b) { return b >= 0; }),
          "weight_backlogs", "allowed: one or more whole numbers of at least 0");
  require(options.tree.rollouts >= 1 && options.tree.leaves >= 1, "tree",
          "allowed: at least one roll-out and one leaf");
  require(
      options.memory_choice || !options.offload.value_or(false), "offload",
      "on takes the place of recomputation that is chosen pair by pair; allowed with memory=off: "
      "off");
  require(options.rounds >= 1 && options.rounds <= 100, "rounds",
          fmt::format("{}; allowed: 1 to 100", options.rounds));
}

}  // namespace dipsim
