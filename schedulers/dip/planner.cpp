// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/planner.hpp"

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/offload.hpp"
#include "schedulers/dip/partition.hpp"
#include "schedulers/dip/partition_search.hpp"
#include "schedulers/dip/plan_replica.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "schedulers/registry.hpp"
#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// Collects the compositions of all replicas.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(const TaskGraph& graph)
      : graph_(graph), order_(graph.placement.cells.size()), chosen_(graph.pairs.size()) {}

  void add(const dip::ReplicaGraph& replica, const dip::Composition& composition,
           std::span<const dip::PairWindow> windows) {
    for (const dip::Index pass : composition.sequence) {
      const RankId rank = replica.ranks[replica.passes[pass].rank];
      order_[graph_.rank(rank).cells.front().row()].push_back(
          {.task = replica.tasks[pass], .together = {}});
    }
    for (std::size_t pair = 0; pair < replica.pair_count(); ++pair) {
      const auto row = static_cast<dip::Index>(pair);
      choose(replica.pairs[pair], replica.options_of(row)[composition.choice[pair]].strategy);
    }
    for (const dip::PairWindow& window : windows) {
      const PairId pair = replica.pairs[window.pair];
      choose(pair, window.strategy);
      offloads_.push_back({.pair = pair,
                           .freed_before = replica.tasks[window.freed_before],
                           .fetched_after = replica.tasks[window.fetched_after]});
    }
  }

  [[nodiscard]] Schedule schedule() const {
    Schedule schedule;
    for (const std::vector<Slot>& slots : order_) {
      schedule.compute.add_row(slots);
    }
    schedule.chosen = chosen_;
    schedule.offloads = offloads_;
    return schedule;
  }

 private:
  void choose(PairId pair, dip::Index strategy) {
    chosen_[pair.row()] = StrategyId(graph_.pair(pair).first_strategy.row() + strategy);
  }

  const TaskGraph& graph_;
  std::vector<std::vector<Slot>> order_;  ///< per cell
  std::vector<StrategyId> chosen_;
  std::vector<OffloadWindow> offloads_;
};

/// What the methods differ in.
struct Method {
  bool split_backward = false;
  std::span<const double> soft_shares;
  bool tries_whole = false;  ///< DipOptions::whole_microbatches: both
  bool offload = false;
  dip::PartitionPlan (*partition)(const Lowering&, const Batch&, const DipOptions&) = nullptr;
  /// One or more plans, best first: where activations are offloaded, the order may change.
  std::vector<dip::Composition> (*plan)(const TaskGraph&, const dip::ReplicaGraph&,
                                        const DipOptions&) = nullptr;
};

template <auto kPlan>
std::vector<dip::Composition> alone(const TaskGraph& graph, const dip::ReplicaGraph& replica,
                                    const DipOptions& options) {
  return {kPlan(graph, replica, options)};
}

constexpr std::array kFull = {1.0};
constexpr std::array kShares = {1.0, 0.75, 0.5, 0.35};

constexpr Method kDip{
    .soft_shares = kFull, .partition = dip::choose_partition, .plan = alone<dip::plan_by_tree>};
constexpr Method kDipPlus{.soft_shares = kShares,
                          .tries_whole = true,
                          .offload = true,
                          .partition = dip::search_partition,
                          .plan = alone<dip::plan_by_descent>};
constexpr Method kDipZb{.split_backward = true,
                        .soft_shares = kShares,
                        .tries_whole = true,
                        .offload = true,
                        .partition = dip::search_partition,
                        .plan = dip::plan_split_by_descent};

class DipPlanner final : public Planner {
 public:
  DipPlanner(const Method& method, DipOptions options)
      : method_(method), options_(std::move(options)) {
    validate(options_);
    if (options_.whole_microbatches.empty() && method.tries_whole) {
      options_.whole_microbatches = {false, true};
    }
    if (options_.soft_shares.empty()) {
      options_.soft_shares.assign(method.soft_shares.begin(), method.soft_shares.end());
    }
  }

  [[nodiscard]] Placement place(const Lowering& lowering,
                                const Batch& representative) const override {
    return dip::place_modules(lowering, method_.partition(lowering, representative, options_));
  }

  [[nodiscard]] Draft slice(const Placement& placement, const Batch& batch,
                            const Lowering& /*lowering*/) const override {
    Draft draft = dip::slice_batch(placement, batch);
    draft.split_backward = method_.split_backward;
    draft.weights_at_once = method_.split_backward;
    draft.offload = offloads();
    return draft;
  }

  [[nodiscard]] Schedule order(const TaskGraph& graph) const override {
    const std::vector<dip::ReplicaGraph> replicas = dip::replica_graphs(graph);
    const std::vector<std::size_t> equal = dip::first_equal(replicas);
    std::vector<Planned> planned(replicas.size());
    parallel_for(
        replicas.size(), options_.jobs,
        [&](std::size_t r) {
          if (equal[r] == r) {
            planned[r] = plan(graph, replicas[r]);
          }
          if (options_.planned) {
            options_.planned(1);
          }
        },
        options_.stop);
    throw_if_stopped(options_.stop);
    ScheduleBuilder builder(graph);
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      const Planned& own = planned[equal[r]];
      builder.add(replicas[r], own.composition, own.windows);
    }
    return builder.schedule();
  }

 private:
  struct Planned {
    dip::Composition composition;
    std::vector<dip::PairWindow> windows;  ///< of pairs that offload
  };

  [[nodiscard]] Planned plan(const TaskGraph& graph, const dip::ReplicaGraph& replica) const {
    throw_if_stopped(options_.stop);
    std::vector<dip::Composition> plans = method_.plan(graph, replica, options_);
    plans.resize(offloads() ? plans.size() : 1);
    std::vector<std::vector<dip::PairWindow>> windows(plans.size());
    for (std::size_t i = 0; offloads() && i < plans.size(); ++i) {
      throw_if_stopped(options_.stop);
      windows[i] = dip::offload(replica, plans[i]);
    }
    const auto best = static_cast<std::size_t>(
        std::ranges::min_element(plans, {}, &dip::Composition::makespan) - plans.begin());
    return {.composition = std::move(plans[best]), .windows = std::move(windows[best])};
  }

  /// Where one strategy serves all pairs there is none to offload instead.
  [[nodiscard]] bool offloads() const {
    return options_.memory_choice && options_.offload.value_or(method_.offload);
  }

  const Method& method_;
  DipOptions options_;
};

}  // namespace

std::unique_ptr<Planner> make_dip(const DipOptions& options) {
  return std::make_unique<DipPlanner>(kDip, options);
}

std::unique_ptr<Planner> make_dip_plus(const DipOptions& options) {
  return std::make_unique<DipPlanner>(kDipPlus, options);
}

std::unique_ptr<Planner> make_dip_zb(const DipOptions& options) {
  return std::make_unique<DipPlanner>(kDipZb, options);
}

namespace schedules {

namespace {

/// The options of the method under the control of its caller.
DipOptions watched(const PlannerOptions& options) {
  DipOptions dip = options.dip;
  const PlanControl& control = options.control;
  dip.jobs = control.jobs == 0 ? dip.jobs : control.jobs;
  dip.stop = control.stop;
  dip.planned = control.planned;
  dip.tried = control.tried;
  return dip;
}

std::vector<std::string_view> search_keys() {
  return {"slice", "segments", "level",   "memory", "evaluations",
          "ms",    "seed",     "balance", "offload"};
}

}  // namespace

ScheduleInfo dip() {
  return {.name = "dip",
          .summary = "slices and segments per modality, searched order, memory per pair",
          .source = "DIP (ASPLOS'26, arXiv 2504.14145), planner",
          .chooses_memory = true,
          .default_chunks = 0,
          .option_keys = {"slice", "segments", "level", "partitioner", "interleaver", "memory",
                          "evaluations", "ms", "seed", "rollouts", "backwards", "offload"},
          .make = [](const PlannerOptions& options) { return make_dip(watched(options)); }};
}

ScheduleInfo dip_plus() {
  return {.name = "dip-plus",
          .summary = "dip with searched slices, segments and levels; order improved per rank",
          .source = "dip; local search: docs/model.md",
          .chooses_memory = true,
          .default_chunks = 0,
          .option_keys = search_keys(),
          .make = [](const PlannerOptions& options) { return make_dip_plus(watched(options)); }};
}

ScheduleInfo dip_zb() {
  return {.name = "dip-zb",
          .summary = "dip-plus with the backward split: weight gradients fill idle time",
          .source = "dip-plus; Zero Bubble (ICLR'24, arXiv 2401.10241)",
          .chooses_memory = true,
          .split_backward = true,
          .default_chunks = 0,
          .option_keys = search_keys(),
          .make = [](const PlannerOptions& options) { return make_dip_zb(watched(options)); }};
}

}  // namespace schedules

}  // namespace dipsim
