// SPDX-License-Identifier: Apache-2.0
// The engine given measured passes, on the shipped table of Zero Bubble.
#include "sim/core/files.hpp"
#include "tests/support/error_of.hpp"
#include "validate/measured_pipeline.hpp"
#include "validate/published_data.hpp"
#include "validate/sets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

std::string shipped_text() {
  return read_file(shipped_published_folder() / "zero_bubble_main.csv");
}

/// The set with the throughput; the other one follows it.
ValidationSet set_of(const std::string& text) {
  return zero_bubble_main(CsvTable(text, "zero_bubble_main.csv"))[0];
}

/// The text with the first `from` of the first line that begins with `start` replaced.
std::string with_cell(std::string text, const std::string& start, const std::string& from,
                      const std::string& to) {
  const std::size_t line = text.find("\n" + start);
  REQUIRE(line != std::string::npos);
  const std::size_t cell = text.find(from, line);
  REQUIRE(cell < text.find('\n', line + 1));
  return text.replace(cell, from.size(), to);
}

std::vector<double> predictions(const std::vector<ValidationRow>& rows) {
  std::vector<double> out;
  for (const ValidationRow& row : rows) {
    out.push_back(row.predicted);
  }
  return out;
}

SyntheticSpec four_ranks() {
  SyntheticSpec spec;
  spec.ranks = 4;
  spec.microbatches = 8;
  return spec;
}

}  // namespace

TEST_CASE("36 unseen rows of Zero Bubble are predicted within 2 % on average") {
  const ValidationSet set = set_of(shipped_text());
  CHECK(set.rows.size() == 36);
  CHECK(set.fitted.size() == 12);
  CHECK(set.unusable.size() == 24);  // ZB-H1 and ZB-H2 were not run
  const ErrorSummary summary = summarize(set);
  MESSAGE("mean error " << summary.mape_percent << " %, largest " << summary.max_percent << " %");
  CHECK(summary.mape_percent <= 2.0);
  REQUIRE(summary.others_mape_percent.size() == 3);
  CHECK(summary.others_mape_percent[0] == doctest::Approx(8.7).epsilon(0.01));
  CHECK(summary.others_mape_percent[1] == doctest::Approx(2.3).epsilon(0.02));
}

TEST_CASE("the bubble rates that the authors calculate are those of the engine") {
  const ValidationSet set = zero_bubble_main(CsvTable(shipped_text(), "zero_bubble_main.csv"))[1];
  REQUIRE(set.rows.size() == 60);
  for (const ValidationRow& row : set.rows) {
    CAPTURE(row.label);
    const bool interleaved = row.label.find("1F1B-I") != std::string::npos;
    CHECK(row.predicted == doctest::Approx(row.measured).epsilon(interleaved ? 0.005 : 0.0014));
  }
}

TEST_CASE("no row of the larger models takes part in the fit of Zero Bubble") {
  const ValidationSet before = set_of(shipped_text());
  // Throughput of one row of each larger model, and each of a schedule of its own.
  std::string text = shipped_text();
  text = with_cell(text, "6.2B,30,32,4096,1024,8,8,1,1,3,24,1F1B,", "1F1B,3.5,", "1F1B,2,");
  text = with_cell(text, "14.6B,46,40,5120,1024,16,16,1,1,1,48,ZB-1p,", "ZB-1p,1.", "ZB-1p,3.");
  text = with_cell(text, "28.3B,62,48,6144,1024,32,32,1,1,1,96,ZB-2p,", "ZB-2p,0.", "ZB-2p,1.");
  const ValidationSet after = set_of(text);
  CHECK(predictions(after.rows) == predictions(before.rows));
  CHECK(predictions(after.fitted) == predictions(before.fitted));
  CHECK(summarize(after).mape_percent > summarize(before).mape_percent);
}

TEST_CASE("each row of the smallest model takes part in the fit of Zero Bubble") {
  const std::string text = shipped_text();
  const std::vector<double> before = predictions(set_of(text).rows);
  const std::string start = "1.5B,22,24,2304,1024,8,8,1,1,6,";
  for (const char* row : {"24,1F1B,11.8", "32,1F1B,12.5", "24,1F1B-I,13.1", "24,ZB-1p,12.9",
                          "64,ZB-1p,14.2", "24,ZB-2p,14.5", "64,ZB-2p,14.9"}) {
    const std::string cells(row);
    CAPTURE(cells);
    const std::string faster = cells.substr(0, cells.size() - 4) + "15.5";
    CHECK(predictions(set_of(with_cell(text, start + cells, cells, faster)).rows) != before);
  }
}

TEST_CASE("gaps that were put into a pipeline are found again") {
  const MeasuredPipeline one(four_ranks(), "1f1b");
  const MeasuredPipeline split(four_ranks(), "zb-1p");
  const PassGaps truth{.exchange = 0.3e-3, .weight = 0.2e-3};
  const std::vector<MeasuredIteration> iterations = {
      {.pipeline = &one, .seconds = one.longest_rank_seconds(truth)},
      {.pipeline = &split, .seconds = split.longest_rank_seconds(truth)}};
  const PassGaps found = fit_gaps(iterations);
  CHECK(found.exchange == doctest::Approx(truth.exchange).epsilon(1e-3));
  CHECK(found.weight == doctest::Approx(truth.weight).epsilon(1e-3));
}

TEST_CASE("iterations shorter than their passes give no gap below zero") {
  const MeasuredPipeline split(four_ranks(), "zb-1p");
  const std::vector<MeasuredIteration> iterations = {
      {.pipeline = &split, .seconds = 0.5 * split.longest_rank_seconds()}};
  const PassGaps found = fit_gaps(iterations);
  CHECK(found.exchange == 0.0);
  CHECK(found.weight == 0.0);
  CHECK(fit_gaps({}).exchange == 0.0);
}

TEST_CASE("the busiest rank of 1F1B takes the closed form of its makespan with gaps") {
  const MeasuredPipeline pipeline(four_ranks(), "1f1b");
  // (m + p - 1) passes of 1 ms forward and 2 ms backward.
  CHECK(pipeline.longest_rank_seconds() == doctest::Approx(11 * 3e-3));
  CHECK(pipeline.longest_rank_seconds({.exchange = 1e-3, .weight = 0.0}) ==
        doctest::Approx(11 * 5e-3));
}

TEST_CASE("rows of Zero Bubble that no pipeline fits are refused with their place") {
  const std::string text = shipped_text();
  const auto refusal = [&](const std::string& from, const std::string& to) {
    return test::error_of(
        [&] { set_of(with_cell(text, "1.5B,22,24,2304,1024,8,8,1,1,6,24,1F1B-I", from, to)); });
  };
  CHECK(refusal(",8,8,1,1,", ",8,7,1,1,").where().find("layers") != std::string::npos);
  CHECK(refusal(",24,1F1B-I", ",23,1F1B-I").where().find("schedule") != std::string::npos);
  CHECK(refusal("18.522", "-18.522").where().find("t_f_ms") != std::string::npos);
  CHECK(refusal("0.1055", "1.1055").where().find("bubble_rate") != std::string::npos);
  CHECK(refusal("13.1", "1e9").kind() == ErrorKind::Input);
}
