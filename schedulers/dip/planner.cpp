// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/planner.hpp"

#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/partition.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "schedulers/registry.hpp"
#include "sim/core/error.hpp"

#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// The best composition of one replica over all memory levels.
dip::Composition plan_replica(const TaskGraph& graph, const dip::ReplicaGraph& replica,
                              const DipOptions& options) {
  dip::Composer composer(graph, replica, options);
  const dip::GroupOrder order = dip::natural_order(replica);
  dip::Composition best = composer.compose(order, 0);
  for (std::size_t level = 1; level < composer.levels(); ++level) {
    const dip::Composition& next = composer.compose(order, level);
    if (next.makespan < best.makespan) {
      best = next;
    }
  }
  return best;
}

/// Collects the compositions of all replicas.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(const TaskGraph& graph)
      : graph_(graph), order_(graph.placement.cells.size()), chosen_(graph.pairs.size()) {}

  void add(const dip::ReplicaGraph& replica, const dip::Composition& composition) {
    for (const dip::Index pass : composition.sequence) {
      const RankId rank = replica.ranks[replica.passes[pass].rank];
      order_[graph_.rank(rank).cells.front().row()].push_back(
          {.task = replica.tasks[pass], .together = {}});
    }
    for (std::size_t pair = 0; pair < replica.pair_count(); ++pair) {
      const PairId id = replica.pairs[pair];
      chosen_[id.row()] =
          StrategyId(graph_.pair(id).first_strategy.row() + composition.choice[pair]);
    }
  }

  [[nodiscard]] Schedule schedule() const {
    Schedule schedule;
    for (const std::vector<Slot>& slots : order_) {
      schedule.compute.add_row(slots);
    }
    schedule.chosen = chosen_;
    return schedule;
  }

 private:
  const TaskGraph& graph_;
  std::vector<std::vector<Slot>> order_;  ///< per cell
  std::vector<StrategyId> chosen_;
};

class DipPlanner final : public Planner {
 public:
  explicit DipPlanner(DipOptions options) : options_(std::move(options)) { validate(options_); }

  [[nodiscard]] Placement place(const Lowering& lowering,
                                const Batch& representative) const override {
    return dip::place_modules(lowering, dip::choose_partition(lowering, representative, options_));
  }

  [[nodiscard]] Draft slice(const Placement& placement, const Batch& batch,
                            const Lowering& /*lowering*/) const override {
    return dip::slice_batch(placement, batch);
  }

  [[nodiscard]] Schedule order(const TaskGraph& graph) const override {
    ScheduleBuilder builder(graph);
    for (const dip::ReplicaGraph& replica : dip::replica_graphs(graph)) {
      builder.add(replica, plan_replica(graph, replica, options_));
    }
    return builder.schedule();
  }

 private:
  DipOptions options_;
};

}  // namespace

std::unique_ptr<Planner> make_dip(const DipOptions& options) {
  return std::make_unique<DipPlanner>(options);
}

namespace schedules {

ScheduleInfo dip() {
  return {.name = "dip",
          .summary = "slices and segments per modality, dual-queue interleaving, memory per pair",
          .source = "DIP (arXiv 2504.14145), planner; natural order of the microbatches",
          .chooses_memory = true,
          .default_chunks = 0,
          .make = [](const PlannerOptions& options) { return make_dip(options.dip); }};
}

}  // namespace schedules

}  // namespace dipsim
