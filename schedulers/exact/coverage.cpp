// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/coverage.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dipsim::exact {

namespace {

void require_own_cells(const Placement& placement) {
  std::vector<RankId> user(placement.cells.size());
  for (std::size_t r = 0; r < placement.ranks.size(); ++r) {
    const std::vector<CellId>& cells = placement.ranks[r].cells;
    if (cells.size() != 1) {
      fail_input(kWhere, fmt::format("rank {} has {} cells; allowed: 1", r, cells.size()));
    }
    RankId& known = user[cells.front().row()];
    if (known.valid()) {
      fail_input(kWhere, fmt::format("ranks {} and {} share cell {}; allowed: one rank per cell",
                                     known.value, r, cells.front().value));
    }
    known = RankId(r);
  }
}

void require_choices(const TaskGraph& graph, std::span<const StrategyId> chosen) {
  if (chosen.size() != graph.pairs.size()) {
    fail_input(kWhere, fmt::format("{} choices for {} pairs", chosen.size(), graph.pairs.size()));
  }
  for (std::size_t i = 0; i < graph.pairs.size(); ++i) {
    const Pair& pair = graph.pairs[i];
    const std::int32_t offset = chosen[i].value - pair.first_strategy.value;
    if (offset < 0 || offset >= pair.strategy_count) {
      fail_input(kWhere, fmt::format("strategy {} is not allowed for pair {}; allowed: {} to {}",
                                     chosen[i].value, i, pair.first_strategy.value,
                                     pair.first_strategy.value + pair.strategy_count - 1));
    }
    if (pair.copy_out.valid() || pair.copy_in.valid()) {
      fail_input(kWhere, fmt::format("pair {} offloads; allowed: pairs without copies", i));
    }
  }
}

}  // namespace

void require_covered(const TaskGraph& graph, std::span<const StrategyId> chosen) {
  static_cast<void>(OrderEvaluator(graph));  // refuses passes that wait for more than passes
  static_cast<void>(lower_bound(graph));     // refuses cycles
  require_own_cells(graph.placement);
  if (!graph.overlaps.empty()) {
    fail_input(kWhere,
               fmt::format("{} pairs of passes may overlap; allowed: none", graph.overlaps.size()));
  }
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (!is_pass(graph.tasks[i].op) && graph.tasks[i].transient.count != 0) {
      fail_input(kWhere, fmt::format("{} needs {} bytes while it runs; allowed: passes only",
                                     describe(graph, TaskId(i)), graph.tasks[i].transient.count));
    }
  }
  require_choices(graph, chosen);
}

}  // namespace dipsim::exact
