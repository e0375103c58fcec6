// SPDX-License-Identifier: Apache-2.0
// 1F1B: one forward, one backward, so that rank i of p holds at most p − i microbatches.
#include "schedulers/static/orders.hpp"
#include "schedulers/static/static_planner.hpp"

#include <algorithm>

namespace dipsim {

std::vector<Step> one_f_one_b_steps(const PipelineShape& shape, int rank) {
  const int warmup = std::min(shape.ranks - 1 - rank, shape.microbatches);
  std::vector<Step> steps;
  for (int x = 0; x < shape.microbatches + warmup; ++x) {
    if (x < shape.microbatches) {
      steps.push_back({.op = Op::F, .microbatch = x});
    }
    if (x >= warmup) {
      steps.push_back({.op = Op::B, .microbatch = x - warmup});
    }
  }
  return steps;
}

namespace {

constexpr StaticSchedule kSchedule{
    .name = "1f1b", .rank_of = round_robin, .steps = one_f_one_b_steps};

}  // namespace

namespace schedules {

ScheduleInfo one_f_one_b() {
  return {.name = kSchedule.name,
          .summary = "one forward, one backward; rank i of p holds at most p - i microbatches",
          .source =
              "PipeDream-Flush (arXiv 2006.09503); Megatron-LM schedules.py, "
              "forward_backward_pipelining_without_interleaving",
          .make = [](const PlannerOptions& options) {
            return make_static_planner(kSchedule, options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
