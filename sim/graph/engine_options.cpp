// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/engine_options.hpp"

#include "sim/core/text.hpp"

#include <array>

namespace dipsim {

namespace {

constexpr std::array<std::string_view, 4> kLanes = {"pair-direction", "pair", "rank",
                                                    "copy-engine"};
constexpr std::array<std::string_view, 3> kSends = {"eager", "blocking", "rendezvous"};

}  // namespace

std::string_view name_of(LanePolicy policy) { return kLanes[static_cast<std::size_t>(policy)]; }

std::string_view name_of(SendMode mode) { return kSends[static_cast<std::size_t>(mode)]; }

LanePolicy lane_policy_of(std::string_view name, const std::string& where) {
  return static_cast<LanePolicy>(index_of(name, kLanes, "lane policy", where));
}

SendMode send_mode_of(std::string_view name, const std::string& where) {
  return static_cast<SendMode>(index_of(name, kSends, "send mode", where));
}

}  // namespace dipsim
