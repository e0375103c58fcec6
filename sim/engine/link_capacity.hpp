// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/engine/ways.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace dipsim {

/// Bytes per second one way, by LinkKind.
using LinkCapacities = std::array<std::int64_t, kLinkKinds>;

/// What all flows on a link together reach: the share of its speed that the best of the profile's
/// curves reaches on it. A message of two channels that gets half of a card leaves the other half
/// to others; two that get all of it share it.
LinkCapacities link_capacities(const Cluster& cluster);

}  // namespace dipsim
