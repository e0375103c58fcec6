// SPDX-License-Identifier: Apache-2.0
#include "report/memory_words.hpp"

#include "report/findings.hpp"
#include "report/summary.hpp"
#include "tests/report/example.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

using namespace dipsim;

namespace {

/// GPipe of three microbatches on two ranks: 2 GiB of weights, 1 GiB per microbatch.
ScheduleResult gpipe() {
  ScheduleResult result;
  result.name = "gpipe";
  result.sample = test::GPipe(2, 3).run();
  IterationResult iteration{.idle = {}, .peak_memory = {}, .fits = true};
  for (const MemoryCurve& curve : result.sample.timeline.memory) {
    iteration.peak_memory.push_back(curve.peak);
    iteration.peak_contents.push_back({.weights = Bytes{2 * test::kGib},
                                       .activations = Bytes{curve.peak.count - 2 * test::kGib}});
    iteration.peak_passes.emplace_back(PassName{.op = Op::F, .microbatch = MicrobatchId{2}});
  }
  iteration.makespan = iteration.iteration = result.sample.timeline.makespan;
  result.iterations = {iteration};
  return result;
}

}  // namespace

TEST_CASE("memory: the peak is named by its pass and its contents") {
  Comparison comparison;
  comparison.schedules = {gpipe()};
  const std::string sentence = peak_sentence(comparison.schedules[0], summarize(comparison, 0));
  CHECK(sentence ==
        "Rank 0 of gpipe peaks at 5.00 GiB during F of microbatch 2: weights 2.00, activations "
        "3.00 GiB.");
  const Findings found = findings(comparison);
  CHECK(std::ranges::find(found.reasons, sentence) != found.reasons.end());
}

TEST_CASE("memory: of several iterations the one with the peak is named") {
  Comparison comparison;
  comparison.schedules = {gpipe()};
  std::vector<IterationResult>& iterations = comparison.schedules[0].iterations;
  iterations.push_back(iterations[0]);
  iterations[1].peak_memory[1] = Bytes{6 * test::kGib};
  iterations[1].peak_contents[1] = {.weights = Bytes{2 * test::kGib},
                                    .activations = Bytes{3 * test::kGib},
                                    .rebuilt = Bytes{test::kGib}};
  iterations[1].peak_passes[1] = std::nullopt;
  CHECK(peak_sentence(comparison.schedules[0], summarize(comparison, 0)) ==
        "Rank 1 of gpipe peaks at 6.00 GiB of iteration 1: weights 2.00, activations 3.00, rebuilt "
        "1.00 GiB.");
}

TEST_CASE("memory: the table has a row per phase, and its parts add up") {
  const Table table = phase_table(gpipe(), 0);
  std::vector<std::string> rows;
  for (const std::vector<Cell>& row : table.rows) {
    rows.push_back(row[0].shown + " " + row[1].shown);
    double sum = 0.0;
    for (std::size_t c = 2; c < row.size(); ++c) {
      sum += std::get<double>(row[c].value);
    }
    CHECK(sum == std::get<double>(row[1].value));
  }
  // All forwards come before all backwards: no steady phase.
  CHECK(rows == std::vector<std::string>{"static 2.00", "warm_up 5.00", "cool_down 5.00",
                                         "optimizer 2.00"});
}

TEST_CASE("memory: the summary has the table of every schedule") {
  Comparison comparison;
  comparison.schedules = {gpipe()};
  CHECK(summary_markdown(comparison).find("### Memory of gpipe, rank 0, iteration 0") !=
        std::string::npos);
}
