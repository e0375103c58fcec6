// SPDX-License-Identifier: Apache-2.0
#include "report/figures.hpp"

#include "report/text.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dipsim {

double TimeShares::idle_total_ms() const {
  return std::accumulate(idle_ms.begin(), idle_ms.end(), 0.0);
}

TimeShares time_shares(const ScheduleResult& schedule) {
  TimeShares shares;
  const auto count = static_cast<double>(schedule.iterations.size());
  for (const IterationResult& iteration : schedule.iterations) {
    const auto ranks = static_cast<double>(std::max<std::size_t>(iteration.peak_memory.size(), 1));
    shares.computing_ms += to_milliseconds(iteration.busy) / ranks / count;
    shares.slowed_ms += to_milliseconds(iteration.lost.passes) / ranks / count;
    for (std::size_t cause = 0; cause < kIdleCauses.size(); ++cause) {
      shares.idle_ms[cause] +=
          to_milliseconds(iteration.idle.*kIdleCauses[cause].member) / ranks / count;
    }
    shares.ending_ms += to_milliseconds(iteration.iteration - iteration.makespan) / count;
  }
  return shares;
}

FullestRank fullest_rank(const ScheduleResult& schedule, const ScheduleSummary& summary) {
  const std::vector<Rank>& ranks = schedule.sample.graph.placement.ranks;
  FullestRank fullest;
  double highest = -1.0;
  for (std::size_t i = 0; i < summary.peak_memory_gib.size(); ++i) {
    const double peak = summary.peak_memory_gib[i];
    const double limit = i < ranks.size() ? to_gib(ranks[i].memory_limit) : 0.0;
    const double use = limit > 0.0 ? peak / limit : peak;
    if (use > highest) {
      highest = use;
      fullest = {i, peak, limit};
    }
  }
  return fullest;
}

std::vector<ScheduleSummary> summarize_all(const Comparison& comparison) {
  std::vector<ScheduleSummary> summaries;
  summaries.reserve(comparison.schedules.size());
  for (std::size_t i = 0; i < comparison.schedules.size(); ++i) {
    summaries.push_back(summarize(comparison, i));
  }
  return summaries;
}

std::vector<std::size_t> ranking(const std::vector<ScheduleSummary>& summaries) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    if (summaries[i].fits) {
      order.push_back(i);
    }
  }
  std::ranges::sort(
      order, {}, [&](std::size_t i) { return std::pair(summaries[i].iteration_time_ms.mean, i); });
  return order;
}

int time_decimals(const std::vector<ScheduleSummary>& summaries) {
  double largest = 0.0;
  for (const ScheduleSummary& summary : summaries) {
    largest = std::max(largest, summary.iteration_time_ms.mean);
  }
  return time_decimals(largest);
}

}  // namespace dipsim
