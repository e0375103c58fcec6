// SPDX-License-Identifier: Apache-2.0
// Everything in common that schedules have whose stages are consecutive layers of one chain.
#pragma once

#include "schedulers/registry.hpp"
#include "schedulers/static/pipeline_instance.hpp"
#include "sim/graph/planner.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace dipsim {

/// A schedule whose pipeline stages hold consecutive layers of the concatenated modules; every
/// microbatch flows through all stages as one work. Its order is a pure function: either of the
/// shape (`steps`), or of the times and sizes of the batch too (`timed_steps`). Exactly one of the
/// two is set.
struct StaticSchedule {
  std::string_view name;
  bool split_backward = false;  ///< steps are F, I and W; else F and B
  int min_chunks = 1;           ///< per rank
  int max_chunks = 1;
  int default_chunks = 1;
  int (*rank_of)(const PipelineShape& shape, int stage) = nullptr;
  /// The order of one rank. Steps that do not exist, as frozen layers have them, are left out.
  std::vector<Step> (*steps)(const PipelineShape& shape, int rank) = nullptr;
  /// The orders of all ranks, which must keep to `room`. Throws Infeasible, naming rank and bytes,
  /// where not even one microbatch after the other fits.
  std::vector<std::vector<Step>> (*timed_steps)(const PipelineInstance& instance) = nullptr;
  /// Throws Input, naming rule, source and nearest legal value, on shapes without an order. Null:
  /// every shape has one.
  void (*check)(const PipelineShape& shape) = nullptr;
};

/// Stage s on rank s mod p: a microbatch goes round all ranks once per chunk.
int round_robin(const PipelineShape& shape, int stage);

/// What was asked, then the same with the activations of the batch counted at 100 % and up to
/// `most` in steps.
std::vector<PlannerOptions> with_activation_percents(const PlannerOptions& asked, int most,
                                                     int step);

/// What was asked; then, where it cuts by time and there are several cuts, the same with the
/// activations of the batch counted at 100, 110, … 200 % to find the cuts that fit. For
/// ScheduleInfo::alternatives of schedules with one chunk per rank.
std::vector<PlannerOptions> cuts_that_fit(const PlannerOptions& asked, const Problem& problem);

/// Plans with this schedule; each replica is a copy of its own. `schedule` must outlive the
/// planner. Throws Input where the schedule does not allow options.chunks_per_rank.
std::unique_ptr<Planner> make_static_planner(const StaticSchedule& schedule,
                                             const PlannerOptions& options);

}  // namespace dipsim
