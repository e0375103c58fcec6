// SPDX-License-Identifier: Apache-2.0
// Megatron-LM as a baseline: its own cut of the layers, its own schedules, the best depth of
// interleaving. docs/baselines.md has the reasons.
#include "schedulers/static/orders.hpp"
#include "schedulers/static/static_planner.hpp"

namespace dipsim {

std::vector<Step> megatron_steps(const PipelineShape& shape, int rank) {
  return shape.chunks == 1 ? one_f_one_b_steps(shape, rank) : interleaved_steps(shape, rank);
}

void require_megatron_shape(const PipelineShape& shape, std::string_view schedule) {
  if (shape.chunks > 1) {
    require_whole_groups(shape, schedule);
  }
}

std::vector<PlannerOptions> megatron_alternatives(const PlannerOptions& asked, int layers,
                                                  int ranks) {
  if (asked.chunks_per_rank != 0) {
    return {asked};
  }
  std::vector<PlannerOptions> alternatives;
  int chunks = 1;
  do {
    alternatives.push_back(asked);
    alternatives.back().chunks_per_rank = chunks;
    chunks *= 2;
  } while (chunks <= layers / ranks);
  return alternatives;
}

namespace {

void check(const PipelineShape& shape) { require_megatron_shape(shape, "megatron"); }

constexpr StaticSchedule kSchedule{.name = "megatron",
                                   .max_chunks = kMostChunks,
                                   .rank_of = round_robin,
                                   .steps = megatron_steps,
                                   .check = check};

}  // namespace

namespace schedules {

ScheduleInfo megatron() {
  return {
      .name = kSchedule.name,
      .summary = "layers cut by parameters; 1F1B or interleaved 1F1B, whichever depth is fastest",
      .source =
          "Megatron-LM (SC'21, arXiv 2104.04473) §2.2; parameters per chunk as in the baseline of "
          "DIP (arXiv 2504.14145), evaluation setup",
      .option_keys = {"chunks", "recompute"},
      .alternatives =
          [](const PlannerOptions& asked, const Problem& problem) {
            return megatron_alternatives(asked, count_layers(problem), problem.depth());
          },
      .make =
          [](const PlannerOptions& options) {
            PlannerOptions own = options;
            own.partition = PartitionRule::Parameters;
            return make_static_planner(kSchedule, own);
          }};
}

}  // namespace schedules

}  // namespace dipsim
