// SPDX-License-Identifier: Apache-2.0
#include "validate/training.hpp"

#include "models/model_lowering.hpp"
#include "schedulers/registry.hpp"
#include "sim/core/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dipsim {

namespace {

LmmModel model_of(const TrainingRun& run) {
  LmmModel model;
  model.name = run.spec.name;
  model.modules.push_back({.spec = run.spec,
                           .feed = Feed::Sequence,
                           .inputs = {},
                           .mask = AttentionMask::Causal,
                           .head = true,
                           .tied = run.tied});
  return model;
}

Batch batch_of(const TrainingRun& run) {
  Batch batch;
  batch.modules = 1;
  const int replicas = run.plan.simulated_replicas();
  for (int m = 0; m < run.microbatches * replicas; ++m) {
    batch.replica.push_back(m / run.microbatches);
    batch.instances.add_row();
    for (int s = 0; s < run.sequences_per_microbatch; ++s) {
      batch.instances.push_back({.tokens = run.sequence, .output_tokens = run.sequence});
    }
  }
  return batch;
}

/// Equally many layers per stage, as Megatron-LM wants them; where they do not divide, the first
/// stages have one more.
std::vector<int> equal_stages(int layers, int stages) {
  std::vector<int> counts(static_cast<std::size_t>(stages), layers / stages);
  std::fill_n(counts.begin(), layers % stages, layers / stages + 1);
  return counts;
}

EngineOptions engine_of(const TrainingRun& run) {
  EngineOptions options{.contention = run.contention};
  if (run.blocking) {
    options.send = SendMode::Blocking;
    options.host_issue =
        round_to_duration(run.cluster.gpu.profile.host_issue.pass_us.value * 1e-6, "host issue");
  }
  return options;
}

/// Larger jobs than anybody has run; keeps a nonsensical row from taking all memory.
void check_size(const TrainingRun& run) {
  constexpr std::int64_t kMostPasses = 4'000'000;
  const std::int64_t passes = std::int64_t{run.plan.pp} * run.chunks_per_rank * run.microbatches *
                              run.plan.simulated_replicas();
  if (run.plan.pp > 4096 || run.microbatches > 100'000 || run.sequences_per_microbatch > 100'000 ||
      passes > kMostPasses) {
    fail_input("", fmt::format("{} ranks x {} chunks x {} microbatches of {} sequences: more than "
                               "{} passes is no training step",
                               run.plan.pp, run.chunks_per_rank, run.microbatches,
                               run.sequences_per_microbatch, kMostPasses));
  }
}

}  // namespace

TrainingPrediction predict(const TrainingRun& run) {
  check_size(run);
  const ModelLowering lowering(model_of(run), run.cluster, run.plan, run.state);
  const Batch batch = batch_of(run);
  PlannerOptions options;
  options.recompute = run.recompute;
  options.chunks_per_rank = run.chunks_per_rank;
  options.partition = PartitionRule::Given;
  options.given_layers = run.stage_layers.empty()
                             ? equal_stages(run.spec.layers, run.plan.pp * run.chunks_per_rank)
                             : run.stage_layers;
  const std::unique_ptr<Planner> planner = find_schedule(run.schedule).make(options);
  const Placement placement = planner->place(lowering, batch);
  const TaskGraph graph = lowering.lower(planner->slice(placement, batch, lowering), batch);
  const Timeline timeline = simulate(graph, planner->order(graph), engine_of(run), run.cluster);
  const Duration drained = timeline.makespan * (run.drains - 1);
  TrainingPrediction out{
      .step_seconds = static_cast<double>((timeline.iteration + drained).count()) * 1e-9,
      .model_flops = graph.model_flops,
      .peak_gib = {},
      .in_flight = {}};
  const double reserve = static_cast<double>(run.cluster.reserved().count);
  for (const MemoryCurve& curve : timeline.memory) {
    out.peak_gib.push_back((static_cast<double>(curve.peak.count) - reserve) / kBytesPerGib);
  }
  out.in_flight = peak_in_flight(graph, timeline.spans);
  return out;
}

Cluster with_gpus(Cluster cluster, int gpus) {
  cluster.nodes = std::max(1, (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node);
  return cluster;
}

}  // namespace dipsim
