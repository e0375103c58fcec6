// SPDX-License-Identifier: Apache-2.0
// What a timeline picture shows, before any pixel is chosen.
#pragma once

#include "report/names.hpp"
#include "sim/graph/results.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// Part of a row's height: two passes that run as one overlapped step share it.
enum class Half : std::uint8_t { Whole, Upper, Lower };

/// A pass, or an optimizer step, in the row of its rank.
struct Box {
  std::size_t row = 0;
  Time start{};
  Time end{};
  std::size_t colour = 0;  ///< in TimelineRows::colours
  Half half = Half::Whole;
  TaskId task;
};

enum class MarkKind : std::uint8_t { Transfer, Collective, CopyOut, CopyIn };

/// A transfer that the rank sends, or a collective or copy that it takes part in.
struct Mark {
  std::size_t row = 0;
  Time start{};
  Time end{};
  MarkKind kind = MarkKind::Transfer;
};

struct BoxColour {
  std::string name;  ///< "F vit"
  std::string_view fill;
};

struct TimelineRows {
  std::vector<RankId> ranks;       ///< one per row
  std::vector<double> idle_share;  ///< per row: of the makespan
  std::vector<BoxColour> colours;  ///< module by module; only those in use
  std::vector<Box> boxes;          ///< by row, start and task
  std::vector<Mark> marks;         ///< by row and start
  Time end{};                      ///< of the last task
};

/// The rows of at most `limit` ranks: all when they are so few, else whole replicas, the slowest
/// one among them.
TimelineRows timeline_rows(const PlanRun& run, const TaskNames& names, std::size_t limit);

}  // namespace dipsim
