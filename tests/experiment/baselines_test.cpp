// SPDX-License-Identifier: Apache-2.0
// The baselines on shipped models.
#include "experiment/compare.hpp"
#include "report/compare_files.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/results.hpp"
#include "sim/graph/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

Comparison run(const char* model, const char* trace, std::vector<std::string> schedules) {
  ExperimentSpec spec;
  spec.model = model;
  spec.trace = trace;
  spec.schedules = std::move(schedules);
  spec.iterations = 3;
  spec.microbatches = 16;
  spec.engine.contention = false;  // of which the order evaluator knows nothing
  return compare(spec, prepare(spec), {});
}

double mean_ms(const Comparison& comparison, std::size_t schedule) {
  return summarize(comparison, schedule).iteration_time_ms.mean;
}

bool fits(const ScheduleResult& schedule) {
  return std::ranges::all_of(schedule.iterations, &IterationResult::fits);
}

Bytes worst_peak(const ScheduleResult& schedule) {
  Bytes worst{};
  for (const IterationResult& iteration : schedule.iterations) {
    worst = std::max(worst, std::ranges::max(iteration.peak_memory));
  }
  return worst;
}

}  // namespace

TEST_CASE("every baseline makes legal plans of vision-language and text-to-video models") {
  for (const auto& [model, trace] :
       {std::pair{"vlm-s", "dip-images"}, std::pair{"t2v-s", "t2v-clips"}}) {
    const Comparison comparison =
        run(model, trace, {"megatron", "nnscaler", "nnscaler:tune=batch", "optimus"});
    REQUIRE(comparison.schedules.size() == 4);
    for (const ScheduleResult& schedule : comparison.schedules) {
      CAPTURE(schedule.name);
      const PlanRun& sample = schedule.sample;
      CHECK_NOTHROW(validate(sample.graph));
      CHECK_NOTHROW(validate(sample.graph, sample.schedule));
      CHECK(OrderEvaluator(sample.graph).evaluate(sample.schedule) == sample.timeline);
      CHECK(std::ranges::find(schedule.notes, "chosen", &Note::name) != schedule.notes.end());
    }
  }
}

TEST_CASE("the choice of variants does not depend on the number of threads") {
  ExperimentSpec spec;
  spec.schedules = {"megatron", "nnscaler", "nnscaler:tune=batch", "optimus"};
  spec.iterations = 2;
  spec.microbatches = 8;
  const Setup setup = prepare(spec);
  const auto files = [&](std::size_t jobs) {
    std::vector<std::string> contents;
    for (const NamedFile& file :
         comparison_files(compare(spec, setup, {.jobs = jobs, .stop = {}, .progress = {}}))) {
      contents.push_back(file.content);
    }
    return contents;
  };
  const std::vector<std::string> first = files(1);
  CHECK_FALSE(first.empty());
  CHECK(files(3) == first);
}

// DIP (arXiv 2504.14145) found 25.3 % on VLM-M; an encoder that runs first holds all microbatches.
TEST_CASE("optimus needs more memory than megatron at equal recomputation") {
  for (const std::string mode : {"keep", "selective", "full"}) {
    CAPTURE(mode);
    const Comparison comparison =
        run("vlm-m", "dip-images", {"megatron:recompute=" + mode, "optimus:recompute=" + mode});
    CHECK(worst_peak(comparison.schedules[1]) > worst_peak(comparison.schedules[0]));
  }
}

TEST_CASE("megatron is as fast as the fastest of its variants that fits") {
  std::vector<std::string> schedules = {"megatron"};
  for (const char* chunks : {"1", "2", "4", "8", "16"}) {  // 95 layers on 4 ranks
    for (const char* mode : {"keep", "selective", "full"}) {
      schedules.push_back(std::string("megatron:chunks=") + chunks + ":recompute=" + mode);
    }
  }
  const Comparison comparison = run("vlm-s", "dip-images", schedules);
  REQUIRE(fits(comparison.schedules[0]));
  double fastest = 1e300;
  for (std::size_t s = 1; s < schedules.size(); ++s) {
    if (fits(comparison.schedules[s])) {
      fastest = std::min(fastest, mean_ms(comparison, s));
    }
  }
  CHECK(mean_ms(comparison, 0) == fastest);
}

TEST_CASE("nnscaler is no slower than 1f1b with stages of equal time, and fits more often") {
  for (const char* model : {"vlm-s", "vlm-l"}) {
    CAPTURE(model);
    const Comparison comparison = run(model, "dip-images", {"1f1b", "nnscaler"});
    CHECK(fits(comparison.schedules[1]));
    CHECK((!fits(comparison.schedules[0]) || mean_ms(comparison, 1) <= mean_ms(comparison, 0)));
  }
}

TEST_CASE("an error in placing a schedule names the schedule as it was written") {
  ExperimentSpec spec;
  spec.schedules = {"optimus:chunks=40"};  // more chunks than the backbone has layers for
  spec.iterations = 1;
  spec.microbatches = 8;
  CHECK_THROWS_WITH(compare(spec, prepare(spec), {}),
                    doctest::Contains("optimus:chunks=40: schedule optimus: module llama3-8b"));
}

}  // namespace dipsim
