// SPDX-License-Identifier: Apache-2.0
// DynaPipe: microbatches of unequal size in an order that suits them, forwards as far ahead as
// memory allows.
#include "schedulers/static/dynapipe_orders.hpp"
#include "schedulers/static/order_builder.hpp"
#include "schedulers/static/shortest_order.hpp"
#include "schedulers/static/static_planner.hpp"
#include "sim/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// The same replica with its microbatches in this order.
PipelineInstance reordered(const PipelineInstance& instance, const std::vector<int>& order) {
  PipelineInstance permuted = instance;
  for (int stage = 0; stage < instance.stage_count(); ++stage) {
    for (std::size_t place = 0; place < order.size(); ++place) {
      permuted.costs[instance.row(stage, static_cast<int>(place))] =
          instance.cost(stage, order[place]);
    }
  }
  return permuted;
}

/// The cyclic order (DynaPipe, EuroSys'24; the authors' cyclic_schedule.py): in every cycle each
/// rank runs at most one backward, then one forward, of those whose input an earlier cycle has
/// made. A forward is left for later where memory does not allow it. Times are those without
/// barriers between cycles (wait_free_cyclic_schedule.py): the order alone comes from the cycles.
void build_cyclic(OrderBuilder& order) {
  const int stages = order.instance().stage_count();
  const auto ready = [](Duration arrival) { return arrival != OrderBuilder::kNever ? 1 : 0; };
  std::vector<int> forward_ready(static_cast<std::size_t>(stages));
  std::vector<int> backward_ready(static_cast<std::size_t>(stages));
  for (bool placed = true; placed;) {
    placed = false;
    for (int stage = 0; stage < stages; ++stage) {
      forward_ready[static_cast<std::size_t>(stage)] = ready(order.forward_arrival(stage));
      backward_ready[static_cast<std::size_t>(stage)] = ready(order.backward_arrival(stage));
    }
    for (int stage = 0; stage < stages; ++stage) {
      if (backward_ready[static_cast<std::size_t>(stage)] != 0) {
        order.place_backward(stage);
        placed = true;
      }
      if (forward_ready[static_cast<std::size_t>(stage)] != 0 && order.admits_forwards(stage)) {
        order.place_forward(stage);
        placed = true;
      }
    }
  }
}

std::vector<std::vector<Step>> search(const PipelineInstance& instance) {
  ShortestOrder shortest;
  for (const std::vector<int>& microbatches : microbatch_orders(instance)) {
    const PipelineInstance permuted = reordered(instance, microbatches);
    OrderBuilder order(permuted, permuted.room);
    build_cyclic(order);
    if (shortest.offer(order)) {
      for (std::vector<Step>& rank : shortest.steps) {
        for (Step& step : rank) {
          step.microbatch = microbatches[static_cast<std::size_t>(step.microbatch)];
        }
      }
    }
  }
  return std::move(shortest.steps);
}

constexpr StaticSchedule kSchedule{
    .name = "dynapipe", .rank_of = round_robin, .timed_steps = search};

}  // namespace

namespace schedules {

ScheduleInfo dynapipe() {
  return {.name = kSchedule.name,
          .summary =
              "groups of similar microbatches in the best order; 1F1B with forwards further ahead",
          .source =
              "DynaPipe (EuroSys'24, doi 10.1145/3627703.3629585), adaptive schedule and order of "
              "microbatches; "
              "the authors' schedule_opt",
          .alternatives = cuts_that_fit,
          .make = [](const PlannerOptions& options) {
            return make_static_planner(kSchedule, options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
