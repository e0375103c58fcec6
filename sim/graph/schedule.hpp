// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/core/ids.hpp"
#include "sim/core/rows.hpp"
#include "sim/graph/task_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

namespace dipsim {

/// One step of a cell: a pass, or two passes that run as one overlapped step.
struct Slot {
  TaskId task;
  TaskId together;  ///< the backward of an Overlap whose forward is `task`; else none
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// Between which passes of its rank the bytes of a pair that offloads are in host memory: they are
/// on the GPU from its F up to `freed_before` and again behind `fetched_after` up to its backward,
/// and gone while these two and all between them run, whatever the times.
struct OffloadWindow {
  PairId pair;
  TaskId freed_before;   ///< starts no earlier than the end of CopyOut: it takes that memory
  TaskId fetched_after;  ///< CopyIn starts no earlier than the end of this pass
  friend bool operator==(const OffloadWindow&, const OffloadWindow&) = default;
};

/// For each cell the order of its passes, and the strategy of each pair. A pass of a rank with
/// several cells stands in the order of each of them. Tasks that are no passes run as soon as
/// their predecessors have ended, first come first served on their lane; `comm`, where it is not
/// empty, fixes the order of the transfers that a rank sends. Copies queue on the two copy lanes of
/// their rank, out in the order of their forwards, in by their `fetched_after`, those behind one
/// pass in the order of `offloads`.
struct Schedule {
  Rows<Slot> compute;                     ///< one row per cell
  Rows<TaskId> comm;                      ///< empty, or one row per rank
  std::vector<StrategyId> chosen;         ///< one per pair
  std::vector<OffloadWindow> offloads{};  ///< one per pair whose strategy has the mode Offload
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The rule of uniform_strategy() for anything that has a `mode`.
template <class Item>
std::size_t uniform_row(std::span<const Item> allowed, RecomputeMode mode) {
  const auto find = [&](auto&& holds) {
    return std::ranges::find_if(allowed, holds, &Item::mode) - allowed.begin();
  };
  const auto end = std::ssize(allowed);
  auto found = find([&](RecomputeMode m) { return m == mode; });
  if (found == end) {
    found = find([&](RecomputeMode m) { return m > mode && m <= RecomputeMode::Full; });
  }
  for (auto row = end; found == end && row-- > 0;) {
    found = allowed[static_cast<std::size_t>(row)].mode <= RecomputeMode::Full ? row : end;
  }
  if (found == end) {
    found = end - 1;
  }
  return static_cast<std::size_t>(found);
}

/// Index of the strategy of this mode among those of a pair; where there is none, of the fastest
/// one that recomputes more, else of the last one. Mixes of modes, and offloading unless it is
/// asked for, count only where a pair has nothing else.
std::size_t uniform_strategy(std::span<const Strategy> allowed, RecomputeMode mode);

/// For every pair its uniform_strategy().
std::vector<StrategyId> uniform_strategies(const TaskGraph& graph, RecomputeMode mode);

/// Throws Input when a pass is missing, stands twice or on the wrong cell, `comm` is neither empty
/// nor an order of all transfers, a choice is not among the allowed strategies of its pair, or the
/// offloads are not in order.
void validate(const TaskGraph& graph, const Schedule& schedule);

/// The part of validate() about `offloads`: exactly one for every pair that offloads, none for
/// others, and F < freed_before <= fetched_after < B (or I) in the order of the rank's first cell.
void validate_offloads(const TaskGraph& graph, const Schedule& schedule);

/// The waits that the offloads add to the edges of the graph: CopyOut before freed_before,
/// fetched_after before CopyIn.
std::vector<Edge> offload_waits(const TaskGraph& graph, const Schedule& schedule);

}  // namespace dipsim
