// SPDX-License-Identifier: Apache-2.0
// nnScaler as a baseline: the cut whose slowest stage is fastest among those that fit, and 1F1B.
// docs/baselines.md says what of nnScaler is left out.
#include "schedulers/static/orders.hpp"
#include "schedulers/static/static_planner.hpp"

#include <vector>

namespace dipsim {

namespace {

constexpr StaticSchedule kSchedule{
    .name = "nnscaler", .rank_of = round_robin, .steps = one_f_one_b_steps};

PlannerOptions by_time(PlannerOptions options) {
  options.partition = PartitionRule::PassTime;
  return options;
}

/// A batch that is placed for itself needs room for scratch memory only: small steps of the share
/// at which activations count are enough.
std::vector<PlannerOptions> alternatives(const PlannerOptions& asked, const Problem& problem) {
  if (!asked.place_each_batch) {
    return cuts_that_fit(by_time(asked), problem);
  }
  return with_activation_percents(asked, 120, 2);
}

}  // namespace

namespace schedules {

ScheduleInfo nnscaler() {
  return {.name = kSchedule.name,
          .summary = "cut whose slowest stage is fastest among those that fit, on one batch; 1F1B",
          .source =
              "nnScaler (OSDI'24), autodist/pipeline_solver.py; as configured by DIP (arXiv "
              "2504.14145), evaluation setup",
          .option_keys = {"recompute", "tune"},
          .alternatives = alternatives,
          .make = [](const PlannerOptions& options) {
            return make_static_planner(kSchedule, by_time(options));
          }};
}

}  // namespace schedules

}  // namespace dipsim
