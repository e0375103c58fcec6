// SPDX-License-Identifier: Apache-2.0
// Task graphs written by hand, for tests: one line per pass or transfer.
#pragma once

#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dipsim::test {

/// Which passes a pair has: F, or F and B, or F, I and W.
enum class Passes : std::uint8_t { ForwardOnly, Fused, Split };

/// Builds `graph` step by step. Starts with `ranks` ranks of one cell each, a chunk on each rank
/// (chunk r on rank r on cell r), one module "m" and one work.
struct GraphBuilder {
  TaskGraph graph;

  explicit GraphBuilder(std::size_t ranks);

  /// A further rank, and its chunk, on these cells; cells that are not there yet are added.
  RankId add_rank(const std::vector<CellId>& cells, double speed = 1.0);
  GroupId add_group(const std::vector<RankId>& ranks);

  /// A pair whose allowed strategies are `strategies`, fastest first.
  PairId add_pair(RankId rank, Passes passes, const std::vector<Strategy>& strategies);
  PairId add_pair(RankId rank, Passes passes, const Strategy& strategy);

  /// A task that is no pass, on one rank or over a group, without edges.
  TaskId add_task(Op op, Lane lane, RankId rank, Duration fixed, GroupId group = {});
  /// A transfer from the rank of `from` to the rank of `to`, with its two edges. Edges to further
  /// receiving passes may be added.
  TaskId add_transfer(TaskId from, TaskId to, Duration fixed, Duration latency = Duration{0});
  void add_edge(TaskId from, TaskId to);
  /// F before B, or F before I before W.
  void add_pair_edges(PairId pair);
  /// CopyOut and CopyIn of a pair, with the edges F → CopyOut → CopyIn → B (or I).
  void add_offload(PairId pair);

  [[nodiscard]] TaskId f(PairId pair) const { return graph.pair(pair).f; }

  [[nodiscard]] TaskId b(PairId pair) const { return graph.pair(pair).b; }

  [[nodiscard]] TaskId i(PairId pair) const { return graph.pair(pair).i; }

  [[nodiscard]] TaskId w(PairId pair) const { return graph.pair(pair).w; }

  /// The schedule with these passes per cell, in this order, and the first strategy of every pair.
  [[nodiscard]] Schedule schedule(const std::vector<std::vector<TaskId>>& orders) const;
};

/// Nanoseconds, for literals.
constexpr Duration ns(std::int64_t count) { return Duration{count}; }

/// The instant this many nanoseconds after the start.
constexpr Time at(std::int64_t count) { return kStart + Duration{count}; }

/// "START..END" in nanoseconds, so that a failed check shows both.
std::string window(const Span& span);

/// Strategies with these pass times, holding no memory.
Strategy fused(std::int64_t f, std::int64_t b);
Strategy split(std::int64_t f, std::int64_t i, std::int64_t w);

}  // namespace dipsim::test
