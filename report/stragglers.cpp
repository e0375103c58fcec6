// SPDX-License-Identifier: Apache-2.0
#include "report/stragglers.hpp"

#include "report/text.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace dipsim {

namespace {

constexpr std::size_t kMostNamed = 4;

int replicas_of(const ScheduleResult& schedule) {
  int most = 0;
  for (const Rank& rank : schedule.sample.graph.placement.ranks) {
    most = std::max(most, rank.replica + 1);
  }
  return most;
}

std::string text_of(const SlowRank& rank) {
  const std::string gpus = rank.first_gpu == rank.last_gpu
                               ? fmt::format("GPU {}", rank.first_gpu)
                               : fmt::format("GPUs {} to {}", rank.first_gpu, rank.last_gpu);
  return fmt::format("rank {}, {}, at {} of full speed", rank.rank, gpus, shortest(rank.speed));
}

/// The slowest of these ranks, by speed; "" where there are none.
std::string text_of(std::vector<SlowRank> ranks) {
  std::ranges::stable_sort(ranks, {}, &SlowRank::speed);
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : "; ") + text_of(ranks[i]);
  }
  if (ranks.size() > kMostNamed) {
    text += fmt::format("; {} more", ranks.size() - kMostNamed);
  }
  return text;
}

bool visible(double ms, int decimals) { return std::abs(ms) >= 0.5 * std::pow(10.0, -decimals); }

std::string parts_text(const ScheduleResult& schedule, const StragglerSummary& summary,
                       int decimals) {
  std::string text;
  for (std::size_t i = 0; i < kLagCauses.size(); ++i) {
    const double ms = summary.parts_ms[i];
    if (!visible(ms, decimals)) {
      continue;
    }
    text += fmt::format("{}{} {}{} ms", text.empty() ? "" : ", ", kLagCauses[i].meaning,
                        ms > 0.0 ? "+" : "", fixed(ms, decimals));
    if (kLagCauses[i].member == &ReplicaTime::slow_ranks) {
      std::vector<SlowRank> own = slow_ranks(schedule);
      std::erase_if(own, [&](const SlowRank& r) { return r.replica != summary.replica; });
      const std::string named = text_of(std::move(own));
      text += named.empty() ? "" : fmt::format(" ({})", named);
    }
  }
  return text;
}

}  // namespace

std::optional<StragglerSummary> straggler_summary(const ScheduleResult& schedule) {
  std::map<int, std::size_t> times;
  StragglerSummary summary;
  double count = 0.0;
  for (const IterationResult& iteration : schedule.iterations) {
    if (!iteration.straggler) {
      continue;
    }
    ++times[iteration.straggler->replica];
    count += 1.0;
    summary.lag_ms += to_milliseconds(iteration.straggler->lag);
    for (std::size_t i = 0; i < kLagCauses.size(); ++i) {
      summary.parts_ms[i] += to_milliseconds(iteration.straggler->parts.*kLagCauses[i].member);
    }
  }
  if (times.empty()) {
    return std::nullopt;
  }
  for (const auto& [replica, often] : times) {
    if (often > summary.times_last) {
      summary.replica = replica;
      summary.times_last = often;
    }
  }
  summary.lag_ms /= count;
  for (double& part : summary.parts_ms) {
    part /= count;
  }
  return summary;
}

std::vector<SlowRank> slow_ranks(const ScheduleResult& schedule) {
  const Placement& placement = schedule.sample.graph.placement;
  std::vector<SlowRank> slow;
  for (std::size_t r = 0; r < placement.ranks.size(); ++r) {
    const Rank& rank = placement.ranks[r];
    if (rank.speed >= 1.0) {
      continue;
    }
    SlowRank found{.rank = r, .replica = rank.replica, .speed = rank.speed};
    bool first = true;
    for (const CellId cell : rank.cells) {
      for (const GpuId gpu : placement.cells[cell.row()]) {
        found.first_gpu = first ? gpu.value : std::min(found.first_gpu, gpu.value);
        found.last_gpu = first ? gpu.value : std::max(found.last_gpu, gpu.value);
        first = false;
      }
    }
    slow.push_back(found);
  }
  return slow;
}

double slow_ranks_cost_ms(const ScheduleResult& schedule) {
  double sum = 0.0;
  for (const IterationResult& iteration : schedule.iterations) {
    sum += to_milliseconds(iteration.slow_ranks);
  }
  return schedule.iterations.empty() ? 0.0 : sum / static_cast<double>(schedule.iterations.size());
}

std::vector<std::string> straggler_sentences(const ScheduleResult& schedule, int decimals) {
  std::vector<std::string> sentences;
  const std::optional<StragglerSummary> summary = straggler_summary(schedule);
  if (summary && visible(summary->lag_ms, decimals)) {
    const std::size_t all = schedule.iterations.size();
    const std::string who =
        fmt::format("replica {} of {} ends last", summary->replica, replicas_of(schedule));
    const std::string when =
        all == 1
            ? fmt::format(", {} ms after the median replica {}", fixed(summary->lag_ms, decimals),
                          schedule.iterations.front().straggler->median)
            : fmt::format(
                  " on {} of {} iterations; on average the last one ends {} ms after "
                  "the median one",
                  summary->times_last, all, fixed(summary->lag_ms, decimals));
    sentences.push_back(fmt::format("Under {}, {}{}: {}.", schedule.name, who, when,
                                    parts_text(schedule, *summary, decimals)));
  }
  if (const double cost = slow_ranks_cost_ms(schedule); visible(cost, decimals)) {
    sentences.push_back(fmt::format("Slow GPUs make an iteration of {} {} ms {}: {}.",
                                    schedule.name, fixed(std::abs(cost), decimals),
                                    cost > 0.0 ? "longer" : "shorter",
                                    text_of(slow_ranks(schedule))));
  }
  return sentences;
}

}  // namespace dipsim
