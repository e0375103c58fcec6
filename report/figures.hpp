// SPDX-License-Identifier: Apache-2.0
// Figures that several reports print, derived from a comparison.
#pragma once

#include "sim/graph/results.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace dipsim {

/// The parts of IdleByCause, in its order: as keys, and as people read them.
struct IdleCause {
  std::string_view key;
  std::string_view meaning;  ///< "waiting for …"
  Duration IdleByCause::* member;
};

inline constexpr std::array<IdleCause, 5> kIdleCauses = {{
    {"pipeline", "inputs still being computed, or nothing left to do", &IdleByCause::pipeline},
    {"transfer", "inputs computed but still on their way", &IdleByCause::transfer},
    {"collective", "a collective or a copy", &IdleByCause::collective},
    {"host", "the host to issue the pass", &IdleByCause::host},
    {"straggler", "a slower replica", &IdleByCause::straggler},
}};

/// Where the iteration time of an average rank goes, as a mean over iterations: the parts sum up
/// to the mean iteration time.
struct TimeShares {
  double computing_ms = 0.0;
  double slowed_ms = 0.0;  ///< part of computing: what passes lost beside communication
  std::array<double, kIdleCauses.size()> idle_ms{};
  double ending_ms = 0.0;  ///< gradient reduction and optimizer after the last pass

  [[nodiscard]] double idle_total_ms() const;
};

TimeShares time_shares(const ScheduleResult& schedule);

/// The rank that comes nearest to its memory limit, or exceeds it most.
struct FullestRank {
  std::size_t rank = 0;
  double peak_gib = 0.0;
  double limit_gib = 0.0;  ///< 0 where the limit is unknown
};

FullestRank fullest_rank(const ScheduleResult& schedule, const ScheduleSummary& summary);

std::vector<ScheduleSummary> summarize_all(const Comparison& comparison);

/// Indices of the schedules that fit in memory, the fastest first; the first one is the winner.
std::vector<std::size_t> ranking(const std::vector<ScheduleSummary>& summaries);

/// Decimals for times of this comparison.
int time_decimals(const std::vector<ScheduleSummary>& summaries);

}  // namespace dipsim
