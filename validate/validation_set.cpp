// SPDX-License-Identifier: Apache-2.0
#include "validate/validation_set.hpp"

#include "sim/core/error.hpp"

#include <algorithm>
#include <cmath>

namespace dipsim {

namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

/// Mean of |prediction of row i / measured − 1|, in percent.
template <class Predict>
double mape_percent(const std::vector<ValidationRow>& rows, const Predict& predict) {
  double sum = 0.0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sum += std::abs(predict(i) / rows[i].measured - 1.0);
  }
  return 100.0 * sum / static_cast<double>(rows.size());
}

std::optional<double> constant_mape_percent(const std::vector<ValidationRow>& rows) {
  std::vector<double> rates;
  for (const ValidationRow& row : rows) {
    if (row.work <= 0.0) {
      return std::nullopt;
    }
    rates.push_back(row.work / row.measured);
  }
  const double rate = median(std::move(rates));
  return mape_percent(rows, [&](std::size_t i) { return rows[i].work / rate; });
}

}  // namespace

ErrorSummary summarize(const ValidationSet& set) {
  ErrorSummary summary;
  summary.rows = set.rows.size();
  if (set.rows.empty()) {
    return summary;
  }
  for (const ValidationRow& row : set.rows) {
    DIPSIM_CHECK(std::isfinite(row.predicted) && row.measured > 0.0,
                 "a row of " + set.name + " has no prediction or no measurement");
    summary.max_percent = std::max(summary.max_percent, 100.0 * std::abs(row.error()));
    summary.bias_percent += 100.0 * row.error() / static_cast<double>(set.rows.size());
  }
  summary.mape_percent =
      mape_percent(set.rows, [&](std::size_t i) { return set.rows[i].predicted; });
  summary.constant_mape_percent = constant_mape_percent(set.rows);
  for (const OtherPredictor& other : set.others) {
    DIPSIM_CHECK(other.predicted.size() == set.rows.size(), other.name + " skips rows");
    summary.others_mape_percent.push_back(
        mape_percent(set.rows, [&](std::size_t i) { return other.predicted[i]; }));
  }
  return summary;
}

}  // namespace dipsim
