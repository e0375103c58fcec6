// SPDX-License-Identifier: Apache-2.0
// Which replica ends last, and why: docs/metrics.md, "Stragglers".
#pragma once

#include "sim/graph/analysis.hpp"
#include "sim/graph/schedule.hpp"
#include "sim/graph/task_graph.hpp"
#include "sim/graph/timeline.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace dipsim {

/// Where the time of a replica goes, from the first start of a pass in any replica to the last end
/// of its own; or the difference of two such sums.
struct ReplicaTime {
  Duration work{0};        ///< passes of an average rank, at full speed and without jitter
  Duration slow_ranks{0};  ///< how much later it ends because ranks compute below full speed
  Duration jitter{0};      ///< how much later (or earlier) because of jitter
  Duration pipeline{0};    ///< an average rank waits for inputs, at full speed, without jitter
  Duration transfer{0};    ///< the same for transfers
  Duration other{0};       ///< the same for collectives, copies and the host
  friend bool operator==(const ReplicaTime&, const ReplicaTime&) = default;

  [[nodiscard]] Duration total() const {
    return work + slow_ranks + jitter + pipeline + transfer + other;
  }
};

ReplicaTime operator-(const ReplicaTime& a, const ReplicaTime& b);

/// The parts of ReplicaTime, in its order: as keys, and as people read them.
struct LagCause {
  std::string_view key;
  std::string_view meaning;
  Duration ReplicaTime::* member;
};

inline constexpr std::array<LagCause, 6> kLagCauses = {{
    {"work", "more work", &ReplicaTime::work},
    {"slow_ranks", "slower ranks", &ReplicaTime::slow_ranks},
    {"jitter", "jitter", &ReplicaTime::jitter},
    {"pipeline", "more waiting in the pipeline", &ReplicaTime::pipeline},
    {"transfer", "more waiting for transfers", &ReplicaTime::transfer},
    {"other", "more waiting for collectives, copies and the host", &ReplicaTime::other},
}};

/// The replica that ends its passes last (the highest number among equals).
struct Straggler {
  int replica = 0;
  int median = 0;  ///< replica that it is compared with: the lower median by end, then number
  Duration lag{0};
  ReplicaTime parts;  ///< of the lag: they add up to it exactly
  friend bool operator==(const Straggler&, const Straggler&) = default;
};

/// The same order of tasks, run three times.
struct StragglerRuns {
  const Timeline& actual;
  const Timeline& steady;   ///< without jitter
  const Timeline& nominal;  ///< without jitter, every rank at speed 1
  const TimelineAnalysis& of_nominal;
};

/// Nothing where fewer than two replicas have passes. `cells`: the order of passes per cell.
std::optional<Straggler> find_straggler(const TaskGraph& graph, const Rows<Slot>& cells,
                                        const StragglerRuns& runs);

/// Whether a rank computes at another speed than 1.
bool has_speeds(const TaskGraph& graph);

/// The same graph with every rank at speed 1.
TaskGraph at_full_speed(TaskGraph graph);

}  // namespace dipsim
