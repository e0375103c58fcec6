// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/exact.hpp"

#include "schedulers/exact/coverage.hpp"
#include "schedulers/exact/memory_states.hpp"
#include "schedulers/exact/problem.hpp"
#include "schedulers/exact/search.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/bound.hpp"
#include "sim/graph/order_evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace dipsim {

namespace {

using exact::Index;
using exact::kWhere;
using exact::Mask;
using exact::Problem;
using exact::Step;

void require_in_range(const ExactOptions& options) {
  if (options.max_nodes < 1) {
    fail_input(kWhere, "max_nodes is 0; allowed: 1 or more");
  }
  if (options.max_width < 1) {
    fail_input(kWhere, "max_width is 0; allowed: 1 or more");
  }
  const bool in_range = options.max_seconds >= 0.0 && options.max_seconds <= kMaxSeconds;
  if (!in_range) {  // NaN included
    fail_input(kWhere, fmt::format("max_seconds is {}; allowed: 0 to {}", options.max_seconds,
                                   kMaxSeconds));
  }
}

/// Cell by cell what the steps say, and at the end the fillers that are left.
Schedule make_schedule(const TaskGraph& graph, std::span<const StrategyId> chosen,
                       const Problem& problem, std::span<const Step> steps) {
  std::vector<std::vector<Slot>> cells(graph.placement.cells.size());
  const auto add = [&](TaskId task) {
    const CellId cell = graph.rank(graph.task(task).rank).cells.front();
    cells[cell.row()].push_back({.task = task, .together = {}});
  };
  const auto add_fillers = [&](Mask fillers) {
    exact::for_each(fillers, [&](Index f) { add(problem.fillers[f].task); });
  };
  Mask left = 0;
  for (const exact::RankPasses& rank : problem.ranks) {
    left |= rank.fillers;
  }
  for (const Step& step : steps) {
    add_fillers(step.fillers);
    add(problem.passes[step.pass].task);
    left &= ~step.fillers;
  }
  add_fillers(left);
  Schedule schedule;
  for (const std::vector<Slot>& slots : cells) {
    schedule.compute.add_row(slots);
  }
  schedule.chosen.assign(chosen.begin(), chosen.end());
  return schedule;
}

/// Steps of an order in which every filler runs as soon as its rank comes to another pass.
std::vector<Step> with_fillers(const Problem& problem, std::span<const Index> order) {
  std::vector<Step> steps;
  Mask done = 0;
  Mask run = 0;
  for (const Index pass : order) {
    const Mask fillers = exact::released_fillers(problem, done) & ~run &
                         problem.ranks[problem.passes[pass].rank].fillers;
    steps.push_back({.pass = pass, .fillers = fillers});
    run |= fillers;
    done |= exact::bit(pass);
  }
  return steps;
}

/// Throws Input unless it is a schedule of the graph with these strategies that fits.
void require_incumbent(const TaskGraph& graph, std::span<const StrategyId> chosen,
                       const Schedule& incumbent, const Timeline& timeline) {
  if (!std::ranges::equal(incumbent.chosen, chosen)) {
    fail_input(kWhere, "the incumbent has other strategies than the ones chosen");
  }
  for (std::size_t r = 0; r < timeline.memory.size(); ++r) {
    const Bytes limit = graph.placement.ranks[r].memory_limit;
    const Bytes peak = timeline.memory[r].peak;
    if (peak > limit) {
      fail_input(kWhere, fmt::format("the incumbent needs {} bytes on rank {}; allowed: up to {}",
                                     peak.count, r, limit.count));
    }
  }
}

/// The first upper bound: the incumbent, or any order that fits.
ExactResult first_result(const TaskGraph& graph, std::span<const StrategyId> chosen,
                         const Problem& problem, exact::MemoryStates& memory,
                         const ExactOptions& options) {
  ExactResult result;
  OrderEvaluator evaluator(graph);
  if (options.incumbent) {
    validate(graph, *options.incumbent);
    const Timeline timeline = evaluator.evaluate(*options.incumbent);
    require_incumbent(graph, chosen, *options.incumbent, timeline);
    result.schedule = *options.incumbent;
    result.makespan = timeline.makespan;
    return result;
  }
  const std::vector<Index> order = memory.some_order();
  if (order.size() < problem.passes.size()) {
    fail_infeasible(kWhere, memory.certain()
                                ? "no order of the passes fits in the memory of all ranks"
                                : "found no order of the passes that fits in the memory of all "
                                  "ranks, and the case is too large to say that there is none");
  }
  result.schedule = make_schedule(graph, chosen, problem, with_fillers(problem, order));
  result.makespan = summarize(graph, evaluator.time(result.schedule)).makespan;
  return result;
}

exact::SearchLimits limits_of(const ExactOptions& options) {
  exact::SearchLimits limits{.nodes = options.max_nodes};
  if (options.max_seconds > 0.0) {
    limits.until = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                       std::chrono::duration<double>(options.max_seconds));
  }
  return limits;
}

}  // namespace

ExactResult solve_exact(const TaskGraph& graph, std::span<const StrategyId> chosen,
                        const ExactOptions& options) {
  // A narrow search finds good orders in little time, and these are what makes a wide one short.
  constexpr std::size_t kFirstWidth = 32;
  constexpr std::size_t kGrowth = 8;

  require_in_range(options);
  const exact::SearchLimits limits = limits_of(options);
  const Problem problem = exact::make_problem(graph, chosen);
  exact::MemoryStates memory(problem);
  ExactResult result = first_result(graph, chosen, problem, memory, options);
  exact::Search search(problem, memory, lower_bound(graph).makespan.count(),
                       result.makespan.count());
  for (std::size_t width = std::min(kFirstWidth, options.max_width);
       search.least() < search.best() && search.run(width, limits) && width < options.max_width;) {
    width = std::min(kGrowth * width, options.max_width);
  }
  if (!search.steps().empty()) {
    // Short of the optimum it may hold passes that could start before the ones appended earlier.
    result.schedule = make_schedule(graph, chosen, problem, search.steps());
    result.makespan = summarize(graph, OrderEvaluator(graph).time(result.schedule)).makespan;
    DIPSIM_CHECK(result.makespan.count() <= search.best(),
                 "the order evaluator takes longer than the exact solver says");
  }
  result.lower_bound = Duration{search.least()};
  DIPSIM_CHECK(result.lower_bound <= result.makespan, "an order beats its own lower bound");
  result.proven = result.lower_bound == result.makespan;
  result.nodes = search.nodes();
  return result;
}

}  // namespace dipsim
