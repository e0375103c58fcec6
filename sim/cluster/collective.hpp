// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dipsim {

/// What a group of GPUs does together.
enum class CollectiveKind : std::uint8_t {
  AllGather,
  ReduceScatter,
  AllReduce,
  Broadcast,
  AllToAll
};

inline constexpr std::size_t kCollectiveKinds = 5;

std::string_view name_of(CollectiveKind kind);

/// Who takes part in a collective: `nodes` nodes with `per_node` GPUs each, below `leaves` leaf
/// switches.
struct CollectiveGroup {
  int members = 1;
  int nodes = 1;   ///< that the members lie on
  int leaves = 1;  ///< that those nodes hang off

  /// On the node with the fewest: its network cards are the bottleneck.
  [[nodiscard]] int per_node() const { return std::max(1, members / nodes); }
};

}  // namespace dipsim
