// SPDX-License-Identifier: Apache-2.0
// What DIP's search repeats for every order it tries, in nanoseconds per pass: interleaving, memory
// choice, re-timing, and their sum. Shipped models on the iterations of their traces.
#include "schedulers/dip/memory_solver.hpp"
#include "sim/core/random.hpp"
#include "tests/bench/dip_steps.hpp"
#include "tests/schedulers/memory_instances.hpp"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

namespace dipsim {

namespace {

void evaluate(benchmark::State& state, const std::string& model, const std::string& trace,
              bool split_backward) {
  test::DipSteps steps(test::dip_replica(model, trace, split_backward));
  const std::size_t passes = steps.replica().passes.size();
  double interleave = 0.0;
  double memory = 0.0;
  double retime = 0.0;
  for (auto _ : state) {
    interleave += test::cpu_seconds([&] { steps.interleave(); });
    memory += test::cpu_seconds([&] { steps.choose(); });
    retime += test::cpu_seconds([&] { benchmark::DoNotOptimize(steps.retime()); });
  }
  const double scale = 1e9 / static_cast<double>(passes);
  const auto per_pass = [&](double total) {
    return benchmark::Counter(total * scale, benchmark::Counter::kAvgIterations);
  };
  state.counters["passes"] = static_cast<double>(passes);
  state.counters["interleave_ns"] = per_pass(interleave);
  state.counters["memory_ns"] = per_pass(memory);
  state.counters["retime_ns"] = per_pass(retime);
  state.counters["sum_ns"] = per_pass(interleave + memory + retime);
}

/// The memory choice of one rank with a proof, from the most saving one on; the mean over instances
/// whose limits range from tight to loose.
void solve_memory(benchmark::State& state, double gap) {
  constexpr std::size_t kPairs = 200;
  std::vector<test::MemoryInstance> instances;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed, "memory solver bench");
    instances.push_back(test::layered_instance(kPairs, seed % 2 == 1,
                                               0.05 + 0.045 * static_cast<double>(seed), random));
  }
  dip::MemorySolver solver(kPairs, 3 * kPairs, 10 * kPairs);
  double proved = 0.0;
  double of_recomputation = 0.0;
  for (auto _ : state) {
    proved = of_recomputation = 0.0;
    for (const test::MemoryInstance& instance : instances) {
      std::vector<dip::Index> choice = test::most_saving(instance);
      const dip::MemoryProof proof = solver.solve(instance.problem(), choice, {.gap = gap});
      proved += proof.gap() / static_cast<double>(instances.size());
      of_recomputation += proof.recompute_gap() / static_cast<double>(instances.size());
    }
  }
  state.counters["gap_percent"] = 100.0 * proved;
  state.counters["recompute_gap_percent"] = 100.0 * of_recomputation;
  state.counters["seconds_each"] = benchmark::Counter(
      static_cast<double>(instances.size()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(solve_memory, default, dip::MemoryEffort{}.gap)
    ->Name("memory_solver/200_pairs/gap_5_percent")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(solve_memory, exact, 0.0)
    ->Name("memory_solver/200_pairs/all_iterations")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(evaluate, vlm_s, "vlm-s", "dip-images", false)
    ->Name("dip/vlm-s")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(evaluate, vlm_l, "vlm-l", "dip-images", false)
    ->Name("dip/vlm-l")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(evaluate, t2v_l, "t2v-l", "t2v-clips", false)
    ->Name("dip/t2v-l")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(evaluate, vlm_l_split, "vlm-l", "dip-images", true)
    ->Name("dip/vlm-l/split_backward")
    ->Unit(benchmark::kMicrosecond);

}  // namespace

}  // namespace dipsim
