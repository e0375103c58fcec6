// SPDX-License-Identifier: Apache-2.0
// The engine with contention on whole clusters: replicas of 16 ranks × 8 H100, 64 microbatches each
// (VLM-XL under 1f1b, other data in every replica). Times are the engine's; planning and building
// the network stand in the counters.
#include "experiment/setup.hpp"
#include "experiment/single.hpp"
#include "sim/engine/engine.hpp"
#include "tests/bench/dip_steps.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace dipsim {

namespace {

/// One iteration, planned.
struct Job {
  Setup setup;
  PlanRun run;
  double prepare_s = 0.0;  ///< model, trace and packing
  double plan_s = 0.0;     ///< placement, lowering and order
};

Job make_job(int gpus) {
  ExperimentSpec spec;
  spec.model = "vlm-xl";
  spec.cluster = "h100-16384";
  spec.trace = "dip-images";
  spec.schedules = {"1f1b:recompute=full"};
  spec.iterations = 1;
  spec.dp = gpus / 128;
  Job job;
  job.prepare_s = test::cpu_seconds([&] { job.setup = prepare(spec); });
  job.plan_s = test::cpu_seconds([&] {
    const PlacedSchedule placed(parse_schedule(spec.schedules.front(), "bench"),
                                *job.setup.lowering, job.setup.batches.front());
    job.run = placed.plan(job.setup.batches.front(), 0);
  });
  return job;
}

/// The most memory that the process has held so far.
double peak_gib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") {
      double kib = 0.0;
      status >> kib;
      return kib / 1024.0 / 1024.0;
    }
  }
  return 0.0;
}

void contention(benchmark::State& state, bool on) {
  const Job job = make_job(static_cast<int>(state.range(0)));
  FlowNetwork network;
  const double build_s = test::cpu_seconds(
      [&] { network = build_flow_network(job.setup.lowering->cluster(), job.run.graph); });
  Timeline timeline;
  for (auto _ : state) {
    timeline = on ? simulate(job.run.graph, job.run.schedule, {}, network)
                  : simulate(job.run.graph, job.run.schedule, {});
    benchmark::DoNotOptimize(timeline);
  }
  const auto tasks = static_cast<std::int64_t>(job.run.graph.tasks.size());
  state.SetItemsProcessed(state.iterations() * tasks);
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["prepare_s"] = job.prepare_s;
  state.counters["plan_s"] = job.plan_s;
  state.counters["network_s"] = build_s;
  state.counters["network_uses"] = static_cast<double>(network.routes.values().size());
  state.counters["slowed_ms"] = to_milliseconds(timeline.lost.passes);
  state.counters["delayed_ms"] = to_milliseconds(timeline.lost.flows);
  state.counters["peak_gib"] = peak_gib();
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(1024)->Arg(4096)->Arg(16384)->Unit(benchmark::kMillisecond)->ArgName("gpus");
}

BENCHMARK_CAPTURE(contention, off, false)->Apply(sizes);
BENCHMARK_CAPTURE(contention, on, true)->Apply(sizes);

}  // namespace

}  // namespace dipsim
