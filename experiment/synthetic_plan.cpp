// SPDX-License-Identifier: Apache-2.0
#include "experiment/synthetic_plan.hpp"

#include "experiment/single.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <utility>

namespace dipsim {

namespace {

std::string microseconds(std::span<const Duration> times) {
  std::string text;
  for (const Duration time : times) {
    text += (text.empty() ? "" : ",") + shortest(static_cast<double>(time.count()) / 1e3);
  }
  return text;
}

std::string microseconds(Duration time) { return microseconds(std::span(&time, 1)); }

}  // namespace

PlanFile synthetic_plan(SyntheticSpec spec, ScheduleChoice choice) {
  if (choice.recompute) {
    fail_input("--schedule", "a synthetic pipeline has nothing to recompute; leave recompute= out");
  }
  if (choice.options.dip.offload.value_or(false)) {
    fail_input("--schedule",
               "a synthetic pipeline has no link to host memory; leave offload=on out");
  }
  if (choice.options.chunks_per_rank == 0) {
    choice.options.chunks_per_rank = spec.chunks;
  }
  spec.chunks = choice.options.chunks_per_rank;
  choice.recompute = RecomputeMode::Keep;
  const std::unique_ptr<Lowering> lowering = make_synthetic(spec);
  const Batch batch = synthetic_batch(spec);
  const PlacedSchedule placed(choice, *lowering, batch);
  PlanRun run = placed.best_plan(batch, {});
  return {.name = choice.label,
          .title = fmt::format("synthetic pipeline, {} ranks, {} microbatches", spec.ranks,
                               spec.microbatches),
          .provenance = {{"ranks", std::to_string(spec.ranks)},
                         {"microbatches", std::to_string(spec.microbatches)},
                         {"chunks", std::to_string(spec.chunks)},
                         {"replicas", std::to_string(spec.replicas)},
                         {"schedule", choice.label},
                         {"forward_us", microseconds(spec.forward)},
                         {"backward_input_us", microseconds(spec.backward_input)},
                         {"backward_weight_us", microseconds(spec.backward_weight)},
                         {"p2p_us", microseconds(spec.p2p_occupied)},
                         {"p2p_latency_us", microseconds(spec.p2p_latency)},
                         {"activation_bytes", std::to_string(spec.activation.count)},
                         {"activation_for_weight_bytes",
                          std::to_string(spec.activation_for_weight.count)},
                         {"memory_limit_bytes", std::to_string(spec.memory_limit.count)}},
          .cluster = {},
          .engine = {},
          .graph = std::move(run.graph),
          .schedule = std::move(run.schedule)};
}

}  // namespace dipsim
