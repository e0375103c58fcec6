// SPDX-License-Identifier: Apache-2.0
// Rows of the table of Zero Bubble as pipelines that can be run.
#pragma once

#include "validate/csv_table.hpp"
#include "validate/measured_pipeline.hpp"
#include "validate/validation_set.hpp"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// dipsim's name of a schedule of the paper; "" where it has none.
std::string zero_bubble_schedule(std::string_view paper);

/// Layers of a stage: the first and the last stage have one less, for the embedding and the head
/// (arXiv 2401.10241 §4.1). Throws Input at the row where they do not share the stages evenly.
int zero_bubble_stage_layers(const CsvRow& row);

/// One row, planned.
struct ZeroBubbleCase {
  CsvRow row;
  std::string label;
  MeasuredPipeline pipeline;
  double engine_seconds = 0.0;     ///< of an iteration without gaps
  double compute_seconds = 0.0;    ///< of all passes of one rank
  double ideal_seconds = 0.0;      ///< of an iteration, by the authors' own bubble rate
  double optimizer_seconds = 0.0;  ///< of the step of one rank
  double samples = 0.0;            ///< per iteration
  double flops = 0.0;              ///< of one GPU

  /// Seconds per iteration, out of the throughput as it was published.
  [[nodiscard]] double measured_seconds() const;
};

/// The rows that can be run; the others are told to `unusable`. The cases are valid while the table
/// lives. Throws Input at the row that makes no sense.
std::deque<ZeroBubbleCase> zero_bubble_cases(const CsvTable& table,
                                             std::vector<UnusableRow>& unusable);

}  // namespace dipsim
