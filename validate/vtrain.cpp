// SPDX-License-Identifier: Apache-2.0
// Step times of GPT training with Megatron-DeepSpeed on A100, as published with vTrain.
#include "validate/vtrain.hpp"

#include "hw/fit/curve_fit.hpp"
#include "sim/core/parallel.hpp"
#include "validate/gpt.hpp"
#include "validate/sets.hpp"
#include "validate/training.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>
#include <utility>

namespace dipsim {

namespace {

/// The files do not say (../docs/validation.md).
constexpr int kVocabulary = 51'200;

/// DeepSpeed's fused fp16 optimizer: squares of the gradients (2 + 2), then Adam on fp16 gradients
/// and fp32 weights and moments (14 + 14).
constexpr double kStepTraffic = 32.0;

constexpr double kMilli = 1e-3;

TrainingRun vtrain_run(const CsvRow& row, const Cluster& cluster) {
  TrainingRun run = gpt_run(row, kVocabulary, cluster);
  run.state.step_traffic = kStepTraffic;
  run.recompute = RecomputeMode::Full;
  return run;
}

double measured_seconds(const CsvRow& row) {
  return row.number("iteration_time_ms", 1e-6) * kMilli;
}

ValidationRow vtrain_row(const CsvRow& row, const Cluster& cluster, const std::string& model) {
  const TrainingRun run = vtrain_run(row, cluster);
  ValidationRow out = step_row(
      row, run,
      fmt::format("{}, tp {} dp {} pp {}, {} of {} sequences", model, run.plan.tp, run.plan.dp,
                  run.plan.pp, run.sequences_per_microbatch, row.text("global_batch_seq")),
      measured_seconds(row));
  out.predicted /= kMilli;
  out.measured /= kMilli;
  return out;
}

ValidationSet vtrain_set(const CsvTable& table, std::string name, std::string title) {
  ValidationSet set;
  set.name = std::move(name);
  set.title = std::move(title);
  set.quantity = "step time";
  set.unit = "ms";
  set.table = table.file();
  set.source = "github:VIA-Research/vTrain@f8dda84 data/";
  set.claim_source = "vTrain (MICRO 2024), on these rows";
  set.notes = {
      "Megatron-DeepSpeed, fp16, 1F1B, full recomputation, attention written out; vocabulary of "
      "51,200 assumed."};
  return set;
}

}  // namespace

IssueRate fit_host_issue(const CsvTable& vtrain_single) {
  const Cluster shipped = load_cluster("a100-64");
  std::vector<CsvRow> rows;
  for (std::size_t row = 0; row < vtrain_single.size(); ++row) {
    if (is_calibration_row(row)) {
      rows.push_back(vtrain_single[row]);
    }
  }
  const auto residuals = [&](std::span<const double> us) {
    Cluster cluster = shipped;
    cluster.gpu.profile.host_issue.kernel_us.value = us[0];
    cluster.gpu.profile.host_issue.pass_us.value = us[1];
    std::vector<double> out(rows.size());
    parallel_for(rows.size(), 0, [&](std::size_t i) {
      out[i] =
          std::log(predict(vtrain_run(rows[i], cluster)).step_seconds / measured_seconds(rows[i]));
    });
    return out;
  };
  const CurveFit fit = fit_curve(
      residuals,
      std::vector<FitRange>{{.start = 30.0, .upper = 1e3}, {.start = 300.0, .upper = 1e5}},
      {.more_starts = 2});
  const std::string source =
      "github:VIA-Research/vTrain@f8dda84 data/ground_truth_single.csv, every tenth row";
  return {.kernel_us = {fit.parameters[0], Evidence::Fitted, source},
          .pass_us = {fit.parameters[1], Evidence::Fitted, source}};
}

std::vector<ValidationSet> vtrain_single(const CsvTable& table) {
  ValidationSet set =
      vtrain_set(table, "vtrain_single", "GPT of width 1024 and 2048 on 2 to 8 A100 of one node");
  set.claim_percent = 8.37;
  set.bar_percent = 8.4;
  const Cluster cluster = load_cluster("a100-64");
  for (std::size_t row = 0; row < table.size(); ++row) {
    const CsvRow cells = table[row];
    (is_calibration_row(row) ? set.fitted : set.rows)
        .push_back(
            vtrain_row(cells, cluster,
                       fmt::format("h {}, {} layers", cells.text("hidden"), cells.text("layers"))));
  }
  return {std::move(set)};
}

std::vector<ValidationSet> vtrain_multi(const CsvTable& table) {
  ValidationSet set =
      vtrain_set(table, "vtrain_multi", "GPT of 3.6B to 175B parameters on 64 to 512 A100");
  set.claim_percent = 14.73;
  set.bar_percent = 10.0;
  const Cluster cluster = load_cluster("a100-64");
  for (const CsvRow& row : table.rows()) {
    set.rows.push_back(vtrain_row(row, cluster, fmt::format("{}B", row.text("params_b"))));
  }
  return {std::move(set)};
}

}  // namespace dipsim
