// SPDX-License-Identifier: Apache-2.0
// Predictions beside measurements that others published.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dipsim {

/// One measurement and its prediction, both in the unit of the set.
struct ValidationRow {
  std::string label;  ///< "175B, 64 GPUs, full recomputation"
  int line = 0;       ///< of the table
  double predicted = 0.0;
  double measured = 0.0;
  double work = 0.0;  ///< what the constant-rate predictor divides by its rate; 0: not applicable
  std::string note = {};  ///< assumptions that the table does not settle

  /// predicted / measured − 1.
  [[nodiscard]] double error() const { return predicted / measured - 1.0; }
};

/// A row that can't be compared: its shape is a word or missing.
struct UnusableRow {
  int line = 0;
  std::string reason;
};

/// Another predictor on the same rows.
struct OtherPredictor {
  std::string name;               ///< "ideal formula"
  std::vector<double> predicted;  ///< per row of ValidationSet::rows
};

/// A table of published measurements, predicted row by row. Rows that any fit has seen stand in
/// `fitted` and count nowhere.
struct ValidationSet {
  std::string name;      ///< "megatron_sc21_table1"
  std::string title;     ///< "GPT 1.7B to 1T on 32 to 3072 A100"
  std::string quantity;  ///< "iteration time"
  std::string unit;      ///< "s"
  std::string table;     ///< file that the rows come from
  std::string source;    ///< public place that the file names
  std::vector<ValidationRow> rows;
  std::vector<ValidationRow> fitted;
  std::vector<UnusableRow> unusable;
  std::vector<OtherPredictor> others;
  std::optional<double> claim_percent;  ///< mean error that a peer claims on these rows
  std::string claim_source;
  std::optional<double> bar_percent;  ///< mean error that dipsim is held to
  std::vector<std::string> notes;     ///< assumptions, and why misses are missed
};

/// Errors over the rows of a set, in percent; all zero where it has none.
struct ErrorSummary {
  std::size_t rows = 0;
  double mape_percent = 0.0;  ///< mean of |error|
  double max_percent = 0.0;   ///< largest |error|
  double bias_percent = 0.0;  ///< mean of error
  /// Mean error of work / rate with one rate for all rows, the median of work / measured: fitted to
  /// the very rows. Nothing where a row has no work.
  std::optional<double> constant_mape_percent;
  std::vector<double> others_mape_percent;  ///< per ValidationSet::others
};

ErrorSummary summarize(const ValidationSet& set);

}  // namespace dipsim
