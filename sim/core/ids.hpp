// SPDX-License-Identifier: Apache-2.0
// Dense, strongly typed indices. An id is the row number of its thing in the table that owns it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace dipsim {

/// Row number in the table of things of kind `Tag`; negative means "none".
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;

  constexpr explicit Id(std::int32_t row) : value(row) {}

  constexpr explicit Id(std::size_t row) : value(static_cast<std::int32_t>(row)) {}

  /// True unless this is "none".
  [[nodiscard]] constexpr bool valid() const { return value >= 0; }

  /// Row number for indexing a vector; only for valid ids.
  [[nodiscard]] constexpr std::size_t row() const { return static_cast<std::size_t>(value); }

  friend constexpr auto operator<=>(Id, Id) = default;
};

using GpuId = Id<struct GpuTag>;
using CellId = Id<struct CellTag>;
using RankId = Id<struct RankTag>;
using ModuleId = Id<struct ModuleTag>;
using ChunkId = Id<struct ChunkTag>;
using MicrobatchId = Id<struct MicrobatchTag>;
using WorkId = Id<struct WorkTag>;
using TaskId = Id<struct TaskTag>;
using PairId = Id<struct PairTag>;
using StrategyId = Id<struct StrategyTag>;
using GroupId = Id<struct GroupTag>;

}  // namespace dipsim
