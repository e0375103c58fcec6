// SPDX-License-Identifier: Apache-2.0
// Zero Bubble Pipeline Parallelism (ICLR'24, arXiv 2401.10241): schedules on A100 with the measured
// times of single passes, so that the engine is tested without any model of kernels.
#include "validate/measured_pipeline.hpp"
#include "validate/sets.hpp"
#include "validate/zero_bubble_cases.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// The model whose rows the gaps are fitted on.
constexpr std::string_view kFittedModel = "1.5B";

ValidationSet empty_set(const CsvTable& table, std::string name, std::string title,
                        std::string quantity) {
  ValidationSet set;
  set.name = std::move(name);
  set.title = std::move(title);
  set.quantity = std::move(quantity);
  set.unit = "s";
  set.table = table.file();
  set.source = "arXiv:2401.10241 Tables 3, 4, 5 and 9";
  return set;
}

bool is_fitted(const ZeroBubbleCase& one) { return one.row.text("model") == kFittedModel; }

/// The engine against the authors' own calculation: nothing is measured here but single passes.
ValidationSet bubbles(const CsvTable& table, const std::deque<ZeroBubbleCase>& cases,
                      std::vector<UnusableRow> unusable) {
  ValidationSet set = empty_set(table, "zero_bubble_bubbles",
                                "Zero Bubble: the authors' own bubble rates of 60 pipelines",
                                "calculated iteration time");
  set.bar_percent = 0.5;
  set.unusable = std::move(unusable);
  OtherPredictor without{.name = "passes alone", .predicted = {}};
  for (const ZeroBubbleCase& one : cases) {
    set.rows.push_back({.label = one.label,
                        .line = one.row.line(),
                        .predicted = one.engine_seconds,
                        .measured = one.ideal_seconds,
                        .work = one.flops,
                        .note = {}});
    without.predicted.push_back(one.compute_seconds);
  }
  set.others.push_back(std::move(without));
  set.notes = {
      "Not a measurement: the \"measured\" column is m (T_F + T_B + T_W) / (1 - bubble rate) with "
      "the "
      "rates that the paper calculates from measured passes. Their calculation counts T_comm as "
      "the "
      "latency of each message and takes the longest time of a rank from its first pass to its "
      "last, "
      "as the engine does here; 1F1B, ZB-H1 and ZB-1p agree to the digits that are printed.",
      "The schedules are dipsim's own; 1F1B-I differs by the latency of p messages."};
  return set;
}

/// One factor on the ideal formula: the one with the least squared relative errors.
double best_factor(const std::vector<std::pair<double, double>>& ideal_and_measured) {
  double up = 0.0;
  double down = 0.0;
  for (const auto& [ideal, measured] : ideal_and_measured) {
    up += ideal / measured;
    down += ideal / measured * (ideal / measured);
  }
  return down > 0.0 ? up / down : 1.0;
}

std::vector<std::string> notes_of(const PassGaps& gaps, std::size_t fitted) {
  return {
      "The engine runs dipsim's own plan with the published T_F, T_B (backward for inputs, in the "
      "letters of the paper), T_W and T_comm (latency of a message). An iteration takes as long as "
      "the busiest rank from its first pass to its last, since no rank waits for all others "
      "between "
      "iterations; its optimizer step (60 bytes per parameter at the memory bandwidth of the A100) "
      "is added, not fitted.",
      fmt::format(
          "Fitted on the {} rows of 1.5B alone: a gap of {:.2f} ms per F and per backward "
          "pass, which wait for a neighbour and feed one, and of {:.2f} ms per W. This form "
          "was chosen on the residuals of these rows: a slowdown of all passes misses 1F1B "
          "and 1F1B-I by 3 % in opposite directions, one gap for all passes misses ZB-2p by "
          "2 %.",
          fitted, gaps.exchange * 1e3, gaps.weight * 1e3),
      "Throughput was published with two or three digits: rounding alone moves a row by up to "
      "0.7 %.",
      "Zero-bubble rows of 14.6B and 28.3B come out 3 % too long, ZB-2p of 6.2B 3 % too short: "
      "what "
      "a W loses seems to grow with the pass, which rows of one model can't show.",
  };
}

PassGaps gaps_of(const std::deque<ZeroBubbleCase>& cases) {
  std::vector<MeasuredIteration> iterations;
  for (const ZeroBubbleCase& one : cases) {
    if (!is_fitted(one) || !one.row.number_if("samples_per_gpu_per_s")) {
      continue;
    }
    const double seconds = one.measured_seconds() - one.optimizer_seconds;
    if (seconds <= 0.0) {
      one.row.fail("samples_per_gpu_per_s", "leaves no time for the passes");
    }
    iterations.push_back({.pipeline = &one.pipeline, .seconds = seconds});
  }
  return fit_gaps(iterations);
}

}  // namespace

std::vector<ValidationSet> zero_bubble_main(const CsvTable& table) {
  std::vector<UnusableRow> unusable;
  const std::deque<ZeroBubbleCase> cases = zero_bubble_cases(table, unusable);
  ValidationSet set =
      empty_set(table, "zero_bubble_main",
                "Zero Bubble: the engine given measured passes, on 8 to 32 A100", "iteration time");
  set.bar_percent = 2.0;
  set.unusable = unusable;
  const PassGaps gaps = gaps_of(cases);
  OtherPredictor ideal{.name = "ideal formula", .predicted = {}};
  OtherPredictor engine{.name = "engine without gaps", .predicted = {}};
  std::vector<std::pair<double, double>> fitted;
  for (const ZeroBubbleCase& one : cases) {
    if (!one.row.number_if("samples_per_gpu_per_s")) {
      set.unusable.push_back({.line = one.row.line(), .reason = "no throughput"});
      continue;
    }
    const ValidationRow row{
        .label = one.label,
        .line = one.row.line(),
        .predicted = one.pipeline.longest_rank_seconds(gaps) + one.optimizer_seconds,
        .measured = one.measured_seconds(),
        .work = one.flops,
        .note = {}};
    if (is_fitted(one)) {
      fitted.emplace_back(one.ideal_seconds, row.measured);
      set.fitted.push_back(row);
    } else {
      set.rows.push_back(row);
      ideal.predicted.push_back(one.ideal_seconds);
      engine.predicted.push_back(one.engine_seconds);
    }
  }
  OtherPredictor scaled{.name = "ideal formula, one factor fitted on 1.5B", .predicted = {}};
  const double factor = best_factor(fitted);
  for (const double seconds : ideal.predicted) {
    scaled.predicted.push_back(seconds * factor);
  }
  set.others = {std::move(ideal), std::move(scaled), std::move(engine)};
  set.notes = notes_of(gaps, set.fitted.size());
  return {std::move(set), bubbles(table, cases, std::move(unusable))};
}

}  // namespace dipsim
