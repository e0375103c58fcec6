// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B: several chunks per rank cut the bubble by their number.
#include "schedulers/static/orders.hpp"
#include "schedulers/static/static_planner.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dipsim {

namespace {

/// The k-th pass of a rank: in groups of p microbatches, each group through one chunk after the
/// other; backwards take the chunks in reverse (Megatron-LM schedules.py, get_schedule_table with
/// the default group of p).
Step kth_pass(const PipelineShape& shape, Op op, int k) {
  const int per_group = shape.ranks * shape.chunks;
  const int chunk = k % per_group / shape.ranks;
  return {.op = op,
          .chunk = op == Op::F ? chunk : shape.chunks - 1 - chunk,
          .microbatch = k / per_group * shape.ranks + k % shape.ranks};
}

}  // namespace

std::vector<Step> interleaved_steps(const PipelineShape& shape, int rank) {
  const int passes = shape.microbatches * shape.chunks;
  const int warmup =
      std::min(2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * shape.ranks, passes);
  std::vector<Step> steps;
  for (int k = 0; k < passes + warmup; ++k) {
    if (k < passes) {
      steps.push_back(kth_pass(shape, Op::F, k));
    }
    if (k >= warmup) {
      steps.push_back(kth_pass(shape, Op::B, k - warmup));
    }
  }
  return steps;
}

void require_whole_groups(const PipelineShape& shape, std::string_view schedule) {
  const int p = shape.ranks;
  const int m = shape.microbatches;
  if (m % p != 0 || m == 0) {
    const int below = m / p * p;
    const int above = below + p;
    const int legal = below > 0 && m - below <= above - m ? below : above;
    fail_input("microbatches",
               fmt::format("{} per replica with schedule {} on {} ranks; allowed: "
                           "multiples of {} (Megatron-LM rejects a last group of fewer "
                           "microbatches than ranks); nearest legal: {}",
                           m, schedule, p, p, legal));
  }
}

namespace {

void check(const PipelineShape& shape) { require_whole_groups(shape, "interleaved"); }

constexpr StaticSchedule kSchedule{.name = "interleaved",
                                   .min_chunks = 2,
                                   .max_chunks = kMostChunks,
                                   .default_chunks = 2,
                                   .rank_of = round_robin,
                                   .steps = interleaved_steps,
                                   .check = check};

}  // namespace

namespace schedules {

ScheduleInfo interleaved() {
  return {.name = kSchedule.name,
          .summary = "1F1B with v chunks per rank: bubble / v for more transfers and activations",
          .source =
              "Megatron-LM (SC'21, arXiv 2104.04473) §2.2.2; schedules.py, "
              "forward_backward_pipelining_with_interleaving",
          .default_chunks = kSchedule.default_chunks,
          .make = [](const PlannerOptions& options) {
            return make_static_planner(kSchedule, options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
