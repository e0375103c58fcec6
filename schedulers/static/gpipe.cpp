// SPDX-License-Identifier: Apache-2.0
// GPipe: all forwards, then all backwards.
#include "schedulers/static/static_planner.hpp"

namespace dipsim {

namespace {

// Every rank runs the backwards in the order of the forwards, as PyTorch's ScheduleGPipe does (the
// figure of the paper runs them in reverse; the times are the same).
std::vector<Step> steps(const PipelineShape& shape, int /*rank*/) {
  std::vector<Step> steps;
  for (const Op op : {Op::F, Op::B}) {
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      steps.push_back({.op = op, .microbatch = microbatch});
    }
  }
  return steps;
}

constexpr StaticSchedule kSchedule{.name = "gpipe", .rank_of = round_robin, .steps = steps};

}  // namespace

namespace schedules {

ScheduleInfo gpipe() {
  return {.name = kSchedule.name,
          .summary = "all forwards, then all backwards; holds every microbatch at once",
          .source = "GPipe (NeurIPS'19, arXiv 1811.06965) §2.2; PyTorch ScheduleGPipe",
          .make = [](const PlannerOptions& options) {
            return make_static_planner(kSchedule, options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
