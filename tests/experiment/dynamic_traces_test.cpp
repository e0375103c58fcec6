// SPDX-License-Identifier: Apache-2.0
// The main claim, at full size: 64 microbatches × 40 iterations of dynamic data.
#include "experiment/compare.hpp"
#include "sim/graph/results.hpp"
#include "sim/graph/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace dipsim {

TEST_CASE("dip is legal, within memory and ahead of 1f1b and interleaved in the mean") {
  struct Case {
    const char* model;
    const char* trace;
  };

  for (const Case& c :
       {Case{"vlm-s", "dip-images"}, Case{"vlm-l", "dip-images"}, Case{"t2v-s", "t2v-clips"}}) {
    const std::string model = c.model;
    CAPTURE(model);
    ExperimentSpec spec;
    spec.model = c.model;
    spec.trace = c.trace;
    spec.schedules = {"1f1b", "1f1b:partition=parameters", "interleaved",
                      "interleaved:partition=parameters:chunks=4", "dip:evaluations=100"};
    spec.iterations = 40;
    spec.microbatches = 64;
    const Comparison comparison =
        compare(spec, prepare(spec), {.jobs = 0, .stop = {}, .progress = {}});
    REQUIRE(comparison.schedules.size() == spec.schedules.size());
    const ScheduleResult& dip = comparison.schedules.back();
    CHECK_NOTHROW(validate(dip.sample.graph, dip.sample.schedule));
    CHECK(dip.iterations.size() == 40);
    CHECK(std::ranges::all_of(dip.iterations, &IterationResult::fits));
    const double own =
        summarize(comparison, comparison.schedules.size() - 1).iteration_time_ms.mean;
    for (std::size_t i = 0; i + 1 < comparison.schedules.size(); ++i) {
      CAPTURE(comparison.schedules[i].name);
      CHECK(own < summarize(comparison, i).iteration_time_ms.mean);
    }
  }
}

}  // namespace dipsim
