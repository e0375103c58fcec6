// SPDX-License-Identifier: Apache-2.0
// The search of zb-1p and zb-2p on case W6 of docs/metrics.md: 8 ranks, times and memory of a
// published profile. Prints the makespan and the time of one candidate order.
#include "models/synthetic.hpp"
#include "schedulers/registry.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/planner.hpp"

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

namespace dipsim {

namespace {

constexpr int kCandidates = 12;

struct Case {
  std::unique_ptr<Planner> planner;
  TaskGraph graph;
};

Case w6(const std::string& schedule, int microbatches) {
  SyntheticSpec spec;
  spec.ranks = 8;
  spec.microbatches = microbatches;
  spec.forward = {Duration{29'850}};
  spec.backward_input = {Duration{29'767}};
  spec.backward_weight = {Duration{18'868}};
  spec.p2p_latency = Duration{466};
  spec.activation = Bytes{3720};
  spec.activation_for_weight = Bytes{1672};
  const std::unique_ptr<Lowering> lowering = make_synthetic(spec);
  const Batch batch = synthetic_batch(spec);
  Case made{find_schedule(schedule).make({}), {}};
  const Placement placement = made.planner->place(*lowering, batch);
  made.graph = lowering->lower(made.planner->slice(placement, batch, *lowering), batch);
  return made;
}

/// Graph to schedule: reading times and memory, and all candidates.
void search(benchmark::State& state, const std::string& schedule) {
  const Case made = w6(schedule, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(made.planner->order(made.graph));
  }
  OrderEvaluator evaluator(made.graph);
  const Timeline timeline = evaluator.evaluate(made.planner->order(made.graph));
  state.SetLabel("makespan (first start to last end) " + std::to_string(timeline.makespan.count()));
  state.counters["per_candidate"] = benchmark::Counter(
      kCandidates, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(search, zb_1p, std::string("zb-1p"))
    ->Name("zero_bubble/w6/zb-1p")
    ->Arg(24)
    ->Arg(32)
    ->Arg(48)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, zb_2p, std::string("zb-2p"))
    ->Name("zero_bubble/w6/zb-2p")
    ->Arg(24)
    ->Arg(32)
    ->Arg(48)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace dipsim
