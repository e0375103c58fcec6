// SPDX-License-Identifier: Apache-2.0
// What holds for every registered schedule on every pipeline (docs/metrics.md, "invariants").
#include "models/synthetic.hpp"
#include "schedulers/registry.hpp"
#include "sim/core/error.hpp"
#include "sim/engine/engine.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/support/invariants.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

namespace {

std::vector<Duration> random_times(std::size_t stages) {
  // Zero and equal times are frequent: ties are where evaluators disagree.
  const auto times = *rc::gen::container<std::vector<std::int64_t>>(
      stages, rc::gen::element<std::int64_t>(0, 1, 1, 2, 3, 7, 50, 1000));
  std::vector<Duration> durations;
  for (const std::int64_t time : times) {
    durations.emplace_back(time);
  }
  return durations;
}

SyntheticSpec random_spec(int chunks) {
  SyntheticSpec spec;
  spec.ranks = *rc::gen::inRange(1, 5);
  spec.chunks = chunks;
  spec.microbatches = spec.ranks * *rc::gen::inRange(1, 4);
  spec.replicas = *rc::gen::inRange(1, 3);
  const auto stages = static_cast<std::size_t>(spec.ranks * spec.chunks);
  spec.forward = random_times(stages);
  spec.backward_input = random_times(stages);
  spec.backward_weight = random_times(stages);
  spec.p2p_occupied = Duration(*rc::gen::element<std::int64_t>(0, 1, 5, 100));
  spec.p2p_latency = Duration(*rc::gen::element<std::int64_t>(0, 0, 3, 40));
  return spec;
}

struct Planned {
  TaskGraph graph;
  Schedule schedule;
};

/// A pipeline and what flows through it.
struct Case {
  std::unique_ptr<Lowering> lowering;
  Batch batch;
};

/// For schedules that need an encoder: two encoders and a backbone in place of the stages.
Case encoder_case(const SyntheticSpec& spec) {
  const auto module = [&](const char* name, int layers, std::vector<ModuleId> inputs) {
    const auto time = [] { return *rc::gen::element<std::int64_t>(0, 1, 1, 2, 3, 7, 50, 1000); };
    return test::FakeModule{name, layers, time(), time(), time(), true, std::move(inputs)};
  };
  Case made;
  auto costs = std::make_unique<test::FakeCosts>(
      std::vector<test::FakeModule>{
          module("vit", spec.ranks, {}), module("audio", spec.ranks + 1, {}),
          module("lm", spec.ranks * spec.chunks, {ModuleId{0}, ModuleId{1}})},
      spec.ranks, spec.replicas);
  costs->latency = spec.p2p_latency;
  made.lowering = std::move(costs);
  std::vector<test::FakeMicrobatch> microbatches;
  for (int m = 0; m < spec.microbatches * spec.replicas; ++m) {
    microbatches.push_back(
        {{1},
         *rc::gen::element(std::vector<std::int32_t>{}, std::vector<std::int32_t>{1, 2}),
         {2}});
  }
  made.batch = test::fake_batch(microbatches, spec.replicas);
  return made;
}

Case case_for(const ScheduleInfo& info, const SyntheticSpec& spec) {
  if (info.needs_encoder) {
    return encoder_case(spec);
  }
  return {.lowering = make_synthetic(spec), .batch = synthetic_batch(spec)};
}

/// Nothing where the schedule's own rules forbid the shape.
std::optional<Planned> plan(const ScheduleInfo& info, const SyntheticSpec& spec) {
  const Case subject = case_for(info, spec);
  const Lowering* lowering = subject.lowering.get();
  const Batch& batch = subject.batch;
  PlannerOptions options;
  options.dip.evaluations = 20;  // of the searches: enough to reach all their parts
  options.dip.jobs = 1;
  if (!info.chooses_memory) {
    options.chunks_per_rank = spec.chunks;
  }
  try {
    const auto planner = info.make(options);
    const Placement placement = planner->place(*lowering, batch);
    Planned planned;
    planned.graph = lowering->lower(planner->slice(placement, batch, *lowering), batch);
    planned.schedule = planner->order(planned.graph);
    return planned;
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::Input);
    return std::nullopt;
  }
}

void scale(TaskGraph& graph, std::int64_t k) {
  for (Task& task : graph.tasks) {
    task.fixed *= k;
    task.latency *= k;
  }
  for (Strategy& s : graph.strategies) {
    s.f *= k;
    s.i *= k;
    s.w *= k;
    s.b *= k;
  }
}

}  // namespace

TEST_CASE("every schedule keeps the invariants, and both evaluators agree to the nanosecond") {
  for (const ScheduleInfo& info : all_schedules()) {
    CAPTURE(info.name);
    int planned_cases = 0;
    const bool holds = rc::check(std::string(info.name), [&] {
      const int fewest = std::max(1, info.default_chunks);
      const SyntheticSpec spec = random_spec(*rc::gen::inRange(fewest, fewest + 2));
      if (const std::optional<Planned> planned = plan(info, spec)) {
        ++planned_cases;
        RC_ASSERT(test::broken_invariant(planned->graph, planned->schedule) == std::string());
      }
    });
    CHECK(holds);
    CHECK(planned_cases > 20);
  }
}

TEST_CASE("every schedule: scaling all times by k scales the makespan by k") {
  for (const ScheduleInfo& info : all_schedules()) {
    CAPTURE(info.name);
    int planned_cases = 0;
    const bool holds = rc::check(std::string(info.name), [&] {
      const SyntheticSpec spec = random_spec(std::max(1, info.default_chunks));
      if (std::optional<Planned> planned = plan(info, spec)) {
        ++planned_cases;
        const Duration before = simulate(planned->graph, planned->schedule).makespan;
        const auto k = *rc::gen::inRange<std::int64_t>(2, 1000);
        scale(planned->graph, k);
        RC_ASSERT(simulate(planned->graph, planned->schedule).makespan == before * k);
      }
    });
    CHECK(holds);
    CHECK(planned_cases > 20);
  }
}

}  // namespace dipsim
