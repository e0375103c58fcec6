// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/results.hpp"

#include "sim/core/error.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace dipsim {

namespace {

/// A division, not a product with 1e-6: it is rounded correctly, so that 1,234,567 ns reads
/// 1.234567 and not 1.2345669999999998.
double milliseconds(double nanoseconds) { return nanoseconds / 1e6; }

double milliseconds(Duration d) { return milliseconds(static_cast<double>(d.count())); }

/// 0 where there is nothing to divide by: no figure of a report is ever NaN or infinite.
double ratio(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }

double ratio(Duration part, Duration whole) {
  return ratio(static_cast<double>(part.count()), static_cast<double>(whole.count()));
}

Spread spread_ms(const std::vector<IterationResult>& iterations, Duration IterationResult::* what) {
  if (iterations.empty()) {
    return {};
  }
  Duration sum{0};
  Duration least = iterations.front().*what;
  Duration largest = least;
  for (const IterationResult& iteration : iterations) {
    const Duration value = iteration.*what;
    sum += value;
    least = std::min(least, value);
    largest = std::max(largest, value);
  }
  const double mean = static_cast<double>(sum.count()) / static_cast<double>(iterations.size());
  return {milliseconds(mean), milliseconds(least), milliseconds(largest)};
}

/// To the nearest nanosecond; idle times are never negative.
Duration mean_of(Duration sum, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  return Duration{(sum.count() + n / 2) / n};
}

/// Sums over the iterations of one schedule.
struct Totals {
  Duration makespan{0};
  Duration lower_bound{0};
  Duration busy{0};
  IdleByCause idle;
  LostTime lost;
  double iteration_seconds = 0.0;
  double mfu_seconds = 0.0;  ///< Σ mfu × iteration time
};

Totals totals_of(const std::vector<IterationResult>& iterations) {
  Totals sum;
  for (const IterationResult& iteration : iterations) {
    sum.makespan += iteration.makespan;
    sum.lower_bound += iteration.lower_bound;
    sum.busy += iteration.busy;
    sum.idle += iteration.idle;
    sum.lost.passes += iteration.lost.passes;
    sum.lost.flows += iteration.lost.flows;
    sum.iteration_seconds += to_seconds(iteration.iteration);
    sum.mfu_seconds += iteration.mfu * to_seconds(iteration.iteration);
  }
  return sum;
}

std::vector<double> peaks_gib(const std::vector<IterationResult>& iterations) {
  std::vector<Bytes> peaks;
  for (const IterationResult& iteration : iterations) {
    peaks.resize(std::max(peaks.size(), iteration.peak_memory.size()));
    for (std::size_t rank = 0; rank < iteration.peak_memory.size(); ++rank) {
      peaks[rank] = std::max(peaks[rank], iteration.peak_memory[rank]);
    }
  }
  std::vector<double> gib(peaks.size());
  std::ranges::transform(peaks, gib.begin(), to_gib);
  return gib;
}

void require_equal_iterations(const Comparison& comparison) {
  for (const ScheduleResult& schedule : comparison.schedules) {
    DIPSIM_CHECK(schedule.iterations.size() == comparison.schedules.front().iterations.size(),
                 "schedules are compared over different numbers of iterations");
  }
}

}  // namespace

ScheduleSummary summarize(const Comparison& comparison, std::size_t index) {
  require_equal_iterations(comparison);
  const auto& iterations = comparison.schedules.at(index).iterations;
  const auto& first = comparison.schedules.front().iterations;
  ScheduleSummary summary;
  summary.iteration_time_ms = spread_ms(iterations, &IterationResult::iteration);
  summary.makespan_ms = spread_ms(iterations, &IterationResult::makespan);
  summary.throughput_ratio =
      ratio(spread_ms(first, &IterationResult::iteration).mean, summary.iteration_time_ms.mean);
  const Totals sum = totals_of(iterations);
  summary.bubble_ratio = ratio(sum.idle.total(), sum.idle.total() + sum.busy);
  summary.bubble_overhead = ratio(sum.idle.total(), sum.busy);
  summary.mfu = ratio(sum.mfu_seconds, sum.iteration_seconds);
  summary.peak_memory_gib = peaks_gib(iterations);
  summary.fits = !iterations.empty() &&
                 std::ranges::all_of(iterations, [](const auto& one) { return one.fits; });
  summary.lower_bound_ms = spread_ms(iterations, &IterationResult::lower_bound).mean;
  if (sum.lower_bound > Duration{0}) {
    summary.gap_to_bound = ratio(sum.makespan - sum.lower_bound, sum.lower_bound);
  }
  if (const std::size_t count = iterations.size(); count > 0) {
    summary.idle = {.pipeline = mean_of(sum.idle.pipeline, count),
                    .transfer = mean_of(sum.idle.transfer, count),
                    .collective = mean_of(sum.idle.collective, count),
                    .host = mean_of(sum.idle.host, count),
                    .straggler = mean_of(sum.idle.straggler, count)};
    summary.lost = {.passes = mean_of(sum.lost.passes, count),
                    .flows = mean_of(sum.lost.flows, count)};
  }
  return summary;
}

std::string winner(const Comparison& comparison) {
  std::string best;
  std::optional<double> least;
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    const ScheduleSummary summary = summarize(comparison, i);
    if (summary.fits && (!least || summary.iteration_time_ms.mean < *least)) {
      best = comparison.schedules[i].name;
      least = summary.iteration_time_ms.mean;
    }
  }
  return best;
}

double work_bound_ms(const Comparison& comparison) {
  if (comparison.schedules.empty() || comparison.schedules.front().iterations.empty()) {
    return 0.0;
  }
  require_equal_iterations(comparison);
  const std::size_t count = comparison.schedules.front().iterations.size();
  Duration sum{0};
  for (std::size_t i = 0; i < count; ++i) {
    Duration least = Duration::max();
    for (const ScheduleResult& schedule : comparison.schedules) {
      least = std::min(least, schedule.iterations[i].lower_bound);
    }
    sum += least;
  }
  return milliseconds(static_cast<double>(sum.count()) / static_cast<double>(count));
}

}  // namespace dipsim
