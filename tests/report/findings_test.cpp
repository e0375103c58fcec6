// SPDX-License-Identifier: Apache-2.0
#include "report/findings.hpp"

#include "report/comparison_table.hpp"
#include "report/figures.hpp"
#include "report/summary.hpp"
#include "tests/report/example.hpp"
#include "tests/report/markup.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace dipsim;

TEST_CASE("findings: the winner, and by how much") {
  const Findings found = findings(test::small_comparison());
  CHECK(found.headline == "fast wins: 170.0 ms per iteration, 1.235 × the throughput of slow.");
}

TEST_CASE("findings: the loss of the second is split without remainder") {
  // Per rank and iteration: slow computes 162.5 and idles 37.5 ms, fast 145 and 15; both end after
  // 10 ms more. 40 ms = 22.5 + 17.5.
  const Findings found = findings(test::small_comparison());
  REQUIRE(found.reasons.size() == 3);
  CHECK(found.reasons[0] ==
        "An average rank of fast computes for 145.0 ms (85.3 %) and idles for 15.0 ms (8.8 %): "
        "pipeline 15.0 ms; gradient reduction and optimizer take 10.0 ms (5.9 %) more.");
  CHECK(found.reasons[1] ==
        "slow takes 40.0 ms (23.5 %) longer than fast: an average rank idles 22.5 ms more "
        "(pipeline +20.0 ms, transfer +2.5 ms) and computes 17.5 ms more (recompute: full, against "
        "keep).");
  CHECK(found.reasons[2] ==
        "huge does not fit: rank 0 needs 9.00 GiB of 8.00 GiB (150.0 ms per iteration, recompute "
        "keep).");
}

TEST_CASE("findings: what can still be gained is measured against the work bound") {
  // Makespan of fast: (90 + 230) / 2 = 160; bound 132.5: 1 - 132.5 / 160 = 17.2 %.
  const Findings found = findings(test::small_comparison());
  CHECK(found.potential.find("At most 17.2 % of the makespan of fast") != std::string::npos);
  Comparison tight = test::small_comparison();
  for (ScheduleResult& schedule : tight.schedules) {
    for (IterationResult& iteration : schedule.iterations) {
      iteration.lower_bound = iteration.makespan;
    }
  }
  tight.schedules.pop_back();
  CHECK(findings(tight).potential.starts_with("Nothing can be gained"));
}

TEST_CASE("findings: when nothing fits, the nearest schedule is named") {
  Comparison comparison = test::small_comparison();
  for (ScheduleResult& schedule : comparison.schedules) {
    schedule.iterations[0].fits = false;
  }
  const Findings found = findings(comparison);
  CHECK(
      found.headline ==
      "No schedule fits in memory; of those with a plan, slow comes nearest: rank 1 needs 4.00 GiB "
      "of 8.00 GiB.");
  CHECK(found.potential.empty());
}

TEST_CASE("findings: an interrupted run says so") {
  Comparison comparison = test::small_comparison();
  comparison.requested_iterations = 10;
  comparison.warnings = {"the trace wrapped"};
  const Findings found = findings(comparison);
  REQUIRE(found.warnings.size() == 2);
  CHECK(found.warnings[1] == "interrupted: 2 of 10 iterations were run");
}

TEST_CASE("findings: how the data were treated stands behind the reasons") {
  Comparison comparison = test::small_comparison();
  const std::size_t reasons = findings(comparison).reasons.size();
  comparison.remarks = {"Samples were dealt anew."};
  const Findings found = findings(comparison);
  REQUIRE(found.reasons.size() == reasons + 1);
  CHECK(found.reasons.back() == "Samples were dealt anew.");
  CHECK(render_comparison(comparison, Format::Table).find("  Samples were dealt anew.\n") !=
        std::string::npos);
}

TEST_CASE("findings: one schedule, equal schedules and no schedule have their sentences") {
  Comparison comparison = test::small_comparison();
  comparison.schedules[1].iterations = comparison.schedules[0].iterations;
  CHECK(findings(comparison).reasons[1] == "fast takes as long as slow.");
  comparison.schedules.resize(1);
  CHECK(findings(comparison).headline == "slow takes 210.0 ms per iteration.");
  CHECK(findings(Comparison{}).headline == "No iteration was run.");
}

TEST_CASE("time shares add up to the mean iteration time") {
  const Comparison comparison = test::small_comparison();
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    const TimeShares shares = time_shares(comparison.schedules[i]);
    CHECK(shares.computing_ms + shares.idle_total_ms() + shares.ending_ms ==
          doctest::Approx(summarize(comparison, i).iteration_time_ms.mean).epsilon(1e-12));
  }
}

TEST_CASE("the winner of table and sentences is the winner of result.json") {
  const Comparison comparison = test::small_comparison();
  const std::string best = winner(comparison);
  CHECK(findings(comparison).headline.starts_with(best + " wins"));
  const Table table = comparison_table(comparison);
  for (const auto& row : table.rows) {
    CHECK((row[0].shown == "*") == (row[1].shown == best));
  }
}

TEST_CASE("comparison on the terminal: table, sentences, warnings") {
  Comparison comparison = test::small_comparison();
  comparison.warnings = {"the trace wrapped"};
  const std::string text = render_comparison(comparison, Format::Table);
  CHECK(text.starts_with("test model on 2 GPUs\n\n"));
  CHECK(text.find("\n*  fast") != std::string::npos);
  CHECK(text.find("fast wins: ") != std::string::npos);
  CHECK(text.ends_with("warning: the trace wrapped\n"));
  CHECK(text.find('\x1B') == std::string::npos);
  CHECK(render_comparison(comparison, Format::Csv).starts_with("winner,schedule,"));
  CHECK(render_comparison(comparison, Format::Json).starts_with("{\n  \"schema_version\""));
  CHECK(render_comparison(comparison, Format::Markdown) == summary_markdown(comparison));
}

TEST_CASE("summary.md: headline, table, inputs and the meaning of every column") {
  const std::string text = summary_markdown(test::small_comparison());
  CHECK(text.starts_with("# test model on 2 GPUs\n\n**fast wins"));
  CHECK(text.find("- seed: 7\n") != std::string::npos);
  CHECK(text.find("- **bubble\\_overhead**") != std::string::npos);
  CHECK(text.find("- **images per microbatch**") != std::string::npos);
  CHECK(text.find("### Plan of fast") != std::string::npos);
  CHECK_FALSE(test::prints_nan(text));
  CHECK(summary_markdown(test::hostile_comparison()).find("<script") == std::string::npos);
}
