// SPDX-License-Identifier: Apache-2.0
// Both evaluators on Megatron's interleaved schedule: 32 ranks, 256 microbatches, 4 chunks per
// rank, 65,536 passes and 65,024 transfers (case W4 of docs/metrics.md).
#include "models/synthetic.hpp"
#include "schedulers/registry.hpp"
#include "sim/engine/engine.hpp"
#include "sim/graph/order_evaluator.hpp"

#include <benchmark/benchmark.h>

#include <memory>

namespace dipsim {

namespace {

struct Pipeline {
  TaskGraph graph;
  Schedule schedule;
};

Pipeline interleaved(int ranks, int microbatches, int chunks) {
  const SyntheticSpec spec{.ranks = ranks, .microbatches = microbatches, .chunks = chunks};
  const std::unique_ptr<Lowering> lowering = make_synthetic(spec);
  const Batch batch = synthetic_batch(spec);
  const auto planner = find_schedule("interleaved").make({.chunks_per_rank = chunks});
  const Placement placement = planner->place(*lowering, batch);
  Pipeline pipeline;
  pipeline.graph = lowering->lower(planner->slice(placement, batch, *lowering), batch);
  pipeline.schedule = planner->order(pipeline.graph);
  return pipeline;
}

void count_passes(benchmark::State& state, const Pipeline& pipeline) {
  state.counters["passes"] = static_cast<double>(2 * pipeline.graph.pairs.size());
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(pipeline.graph.tasks.size()));
}

void engine(benchmark::State& state) {
  const Pipeline pipeline = interleaved(32, 256, 4);
  for (auto _ : state) {
    benchmark::DoNotOptimize(simulate(pipeline.graph, pipeline.schedule));
  }
  count_passes(state, pipeline);
}

void order(benchmark::State& state) {
  const Pipeline pipeline = interleaved(32, 256, 4);
  OrderEvaluator evaluator(pipeline.graph);
  for (auto _ : state) {
    benchmark::DoNotOptimize(evaluator.time(pipeline.schedule).data());
  }
  count_passes(state, pipeline);
}

BENCHMARK(engine)->Name("engine/interleaved_32x256x4")->Unit(benchmark::kMillisecond);
BENCHMARK(order)->Name("order/interleaved_32x256x4")->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace dipsim
