// SPDX-License-Identifier: Apache-2.0
#include "experiment/compare.hpp"

#include "experiment/run_plan.hpp"
#include "report/compare_files.hpp"
#include "sim/core/files.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <stop_token>

namespace dipsim {

namespace {

ExperimentSpec small_spec() {
  ExperimentSpec spec;
  spec.model = "vlm-s";
  spec.trace = "dip-images";
  spec.schedules = {"1f1b:partition=time", "interleaved", "dip"};
  spec.iterations = 6;
  spec.microbatches = 16;
  return spec;
}

Comparison run(const ExperimentSpec& spec, std::size_t jobs) {
  const Setup setup = prepare(spec);
  return compare(spec, setup, {.jobs = jobs, .stop = {}, .progress = {}});
}

}  // namespace

TEST_CASE("a comparison does not depend on the number of threads, nor on the run") {
  const ExperimentSpec spec = small_spec();
  const auto files = [&](std::size_t jobs) {
    std::vector<std::string> contents;
    for (const NamedFile& file : comparison_files(run(spec, jobs))) {
      contents.push_back(file.content);
    }
    return contents;
  };
  const std::vector<std::string> first = files(1);
  CHECK(files(1) == first);
  CHECK(files(2) == first);
  CHECK(files(7) == first);
}

TEST_CASE("every schedule of a comparison is legal, and dip fits and wins on dynamic data") {
  ExperimentSpec spec = small_spec();
  spec.engine.contention = false;  // of which the order evaluator knows nothing
  const Comparison comparison = run(spec, 0);
  REQUIRE(comparison.schedules.size() == 3);
  for (const ScheduleResult& schedule : comparison.schedules) {
    CAPTURE(schedule.name);
    const PlanRun& sample = schedule.sample;
    CHECK_NOTHROW(validate(sample.graph));
    CHECK_NOTHROW(validate(sample.graph, sample.schedule));
    CHECK(OrderEvaluator(sample.graph).evaluate(sample.schedule) == sample.timeline);
    CHECK(schedule.iterations.size() == 6);
    CHECK(schedule.iterations[comparison.sample_iteration].makespan == sample.timeline.makespan);
    for (const IterationResult& iteration : schedule.iterations) {
      CHECK(iteration.makespan >= iteration.lower_bound);
    }
  }
  CHECK(winner(comparison) == "dip");
  CHECK(std::ranges::all_of(comparison.schedules[2].iterations, &IterationResult::fits));
}

TEST_CASE("contention costs time, says how much, and a plan run again loses as much") {
  ExperimentSpec spec = small_spec();
  spec.schedules = {"interleaved"};
  spec.iterations = 1;
  const Setup setup = prepare(spec);
  const Comparison with = compare(spec, setup, {});
  ExperimentSpec without_spec = spec;
  without_spec.engine.contention = false;
  const Comparison without = compare(without_spec, prepare(without_spec), {});
  const IterationResult& on = with.schedules[0].iterations[0];
  const IterationResult& off = without.schedules[0].iterations[0];
  CHECK(off.lost == LostTime{});
  CHECK(on.lost.passes > Duration{0});
  CHECK(on.iteration > off.iteration);
  CHECK(on.busy == off.busy + on.lost.passes);
  CHECK(on.lower_bound == off.lower_bound);
  CHECK(summarize(with, 0).lost == on.lost);
  const auto said = std::ranges::find(with.inputs, "contention", &Note::name);
  REQUIRE(said != with.inputs.end());
  CHECK(said->text == "on");

  const PlanRun& sample = with.schedules[0].sample;
  const PlanFile plan{.name = "interleaved",
                      .title = {},
                      .provenance = {},
                      .cluster = setup.lowering->cluster(),
                      .engine = spec.engine,
                      .graph = sample.graph,
                      .schedule = sample.schedule};
  const Comparison again = run_plan(plan, plan.engine);
  CHECK(again.schedules[0].sample.timeline == sample.timeline);
  CHECK(again.schedules[0].iterations[0].lost == on.lost);
}

TEST_CASE("a static schedule uses the fastest mode that fits every iteration") {
  ExperimentSpec spec = small_spec();
  spec.schedules = {"1f1b:recompute=keep", "1f1b:recompute=selective", "1f1b:recompute=full",
                    "1f1b"};
  const Comparison comparison = run(spec, 0);
  const auto fits = [&](std::size_t i) {
    return std::ranges::all_of(comparison.schedules[i].iterations, &IterationResult::fits);
  };
  std::size_t fastest = 3;
  for (std::size_t mode = 0; mode < 3; ++mode) {
    const bool faster = fastest == 3 || summarize(comparison, mode).iteration_time_ms.mean <
                                            summarize(comparison, fastest).iteration_time_ms.mean;
    fastest = fits(mode) && faster ? mode : fastest;
  }
  REQUIRE(fastest < 3);
  CHECK(comparison.schedules[3].recompute == comparison.schedules[fastest].recompute);
  CHECK(comparison.schedules[3].iterations.front().makespan ==
        comparison.schedules[fastest].iterations.front().makespan);
}

TEST_CASE("a stop keeps the iterations that every schedule has finished") {
  ExperimentSpec spec = small_spec();
  // Fixed modes: the lightest that fits two iterations may not fit all six.
  spec.schedules = {"1f1b:recompute=full", "interleaved:recompute=full", "dip"};
  const Setup setup = prepare(spec);
  std::stop_source source;
  const Comparison comparison = compare(
      spec, setup,
      {.jobs = 1, .stop = source.get_token(), .progress = [&](std::size_t done, std::size_t) {
         if (done == 7) {
           source.request_stop();
         }
       }});
  CHECK(comparison.requested_iterations == 6);
  REQUIRE(comparison.schedules.size() == 3);
  const Comparison whole = run(spec, 0);
  for (std::size_t s = 0; s < 3; ++s) {
    REQUIRE(comparison.schedules[s].iterations.size() == 2);  // 7 of 18 runs: two whole iterations
    CHECK(comparison.schedules[s].iterations[1].makespan ==
          whole.schedules[s].iterations[1].makespan);
  }
  CHECK(comparison.loads.front().per_iteration.size() == 2);
}

TEST_CASE("a stop before the first iteration leaves an empty comparison") {
  const ExperimentSpec spec = small_spec();
  const Setup setup = prepare(spec);
  std::stop_source source;
  source.request_stop();
  const Comparison comparison =
      compare(spec, setup, {.jobs = 2, .stop = source.get_token(), .progress = {}});
  CHECK(comparison.schedules.empty());
}

TEST_CASE("a stop inside the first iteration keeps the schedules that have ended it") {
  ExperimentSpec spec = small_spec();
  spec.iterations = 1;
  spec.dp = 3;
  spec.schedules = {"1f1b:recompute=full", "dip:evaluations=1000000"};
  const Setup setup = prepare(spec);
  std::stop_source source;
  std::atomic<std::size_t> expected{0};
  const auto start = std::chrono::steady_clock::now();
  const Comparison comparison = compare(
      spec, setup,
      {.jobs = 2, .stop = source.get_token(), .progress = [&](std::size_t, std::size_t total) {
         expected = total;
         source.request_stop();  // 1f1b reports its three replicas when it has ended
       }});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
  CHECK(expected == 6);  // two schedules of one variant, three replicas
  REQUIRE(comparison.schedules.size() == 1);
  CHECK(comparison.schedules[0].name == "1f1b:recompute=full");
  CHECK(comparison.schedules[0].iterations.size() == 1);
  CHECK(comparison.warnings.back() ==
        "left out, as it was interrupted before it had planned iteration 0: "
        "dip:evaluations=1000000");
}

TEST_CASE("progress ends at the number of replica plans that was expected") {
  ExperimentSpec spec = small_spec();
  spec.iterations = 2;
  spec.dp = 2;
  spec.schedules = {"1f1b", "dip:evaluations=10"};
  const Setup setup = prepare(spec);
  std::size_t most = 0;
  std::size_t all = 0;
  std::mutex mutex;
  compare(spec, setup, {.progress = [&](std::size_t done, std::size_t total) {
            const std::lock_guard lock(mutex);
            most = std::max(most, done);
            all = total;
          }});
  CHECK(most == all);
  CHECK(all % 4 == 0);  // iterations × replicas × variants
}

TEST_CASE("offloading that is asked for where the cluster has no link to host memory is refused") {
  const test::TemporaryFolder folder;
  Cluster cluster = load_cluster("h800-64");
  cluster.host_gbytes_per_s = 0.0;
  ExperimentSpec spec = small_spec();
  spec.cluster = (folder.path() / "c.json").string();
  write_file(folder.path() / "c.json", to_json(cluster).dump());
  spec.iterations = 1;
  spec.schedules = {"dip:offload=on:evaluations=0"};
  const Error error = test::error_of([&] { run(spec, 1); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(error.message().find("no link to host memory") != std::string::npos);
  spec.schedules = {"dip:evaluations=0"};
  CHECK_NOTHROW(run(spec, 1));
}

TEST_CASE("composed iterations hold the same data in other microbatches") {
  ExperimentSpec spec = small_spec();
  spec.trace = "obelics-like";
  spec.iterations = 3;
  spec.dp = 2;
  const Setup packed = prepare(spec);
  spec.compose = true;
  const Setup composed = prepare(spec);
  REQUIRE(composed.batches.size() == packed.batches.size());
  for (std::size_t i = 0; i < packed.batches.size(); ++i) {
    CHECK(composed.batches[i] != packed.batches[i]);
    CHECK(composed.batches[i].replica == packed.batches[i].replica);
    CHECK(composed.lowering->model_flops(composed.batches[i]) ==
          doctest::Approx(packed.lowering->model_flops(packed.batches[i])));
  }
  CHECK(composed.loads[0].per_iteration == packed.loads[0].per_iteration);
  CHECK(packed.remarks.empty());
  REQUIRE(composed.remarks.size() == 1);
  CHECK(composed.remarks[0].starts_with("Composed microbatches: the largest has 1."));
  CHECK(composed.remarks[0].find("replica") != std::string::npos);
  CHECK(prepare_iteration(spec, 1).batches[0] == composed.batches[1]);
}

TEST_CASE("what can't be composed is said to stay as it is") {
  ExperimentSpec spec = small_spec();
  const Setup packed = prepare(spec);
  spec.compose = true;
  const Setup composed = prepare(spec);
  CHECK(composed.batches == packed.batches);
  CHECK(composed.remarks.empty());
  REQUIRE(composed.warnings.size() == packed.warnings.size() + 1);
  CHECK(composed.warnings.back().starts_with("dip-images: compose changes nothing"));
}

TEST_CASE("replicas get data of their own, and gradient reduction makes the iteration longer") {
  ExperimentSpec spec = small_spec();
  spec.iterations = 1;
  spec.schedules = {"1f1b"};
  const Comparison one = run(spec, 0);
  spec.dp = 2;
  const Comparison two = run(spec, 0);
  const IterationResult& alone = one.schedules[0].iterations[0];
  const IterationResult& together = two.schedules[0].iterations[0];
  CHECK(together.peak_memory.size() == 2 * alone.peak_memory.size());
  CHECK(together.iteration > together.makespan);
  CHECK(together.idle.straggler > Duration{0});
}

}  // namespace dipsim
