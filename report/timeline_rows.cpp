// SPDX-License-Identifier: Apache-2.0
#include "report/timeline_rows.hpp"

#include "report/palette.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace dipsim {

namespace {

/// The replica whose last pass ends last.
int slowest_replica(const PlanRun& run) {
  Time last = kStart;
  int slowest = 0;
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i) {
    const Task& task = run.graph.tasks[i];
    if (is_pass(task.op) && run.timeline.spans[i].end > last) {
      last = run.timeline.spans[i].end;
      slowest = run.graph.rank(task.rank).replica;
    }
  }
  return slowest;
}

std::vector<RankId> ranks_to_show(const PlanRun& run, std::size_t limit) {
  const std::vector<Rank>& ranks = run.graph.placement.ranks;
  std::vector<RankId> shown;
  if (ranks.size() <= limit) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      shown.emplace_back(i);
    }
    return shown;
  }
  std::map<int, std::vector<RankId>> by_replica;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    by_replica[ranks[i].replica].emplace_back(i);
  }
  const auto take = [&](const std::vector<RankId>& replica) {
    const std::size_t count = std::min(replica.size(), limit - shown.size());
    shown.insert(shown.end(), replica.begin(), replica.begin() + static_cast<long>(count));
  };
  const int slowest = slowest_replica(run);
  take(by_replica[slowest]);
  for (const auto& [replica, members] : by_replica) {
    if (replica != slowest && shown.size() + members.size() <= limit) {
      take(members);
    }
  }
  std::ranges::sort(shown);
  return shown;
}

/// The two passes of every slot that runs two at once.
std::map<TaskId, Half> halves(const Schedule& schedule) {
  std::map<TaskId, Half> out;
  for (const Slot& slot : schedule.compute.values()) {
    if (slot.together.valid()) {
      out[slot.task] = Half::Upper;
      out[slot.together] = Half::Lower;
    }
  }
  return out;
}

/// Numbers colours densely in the order of (module set, op), the optimizer last.
class Colours {
 public:
  using Key = std::pair<std::size_t, Op>;

  explicit Colours(const TaskNames& names) : names_(names) {}

  [[nodiscard]] Key key(const Task& task) const {
    if (task.op == Op::Optimizer) {
      return {names_.module_sets().size(), Op::Optimizer};
    }
    return {task.chunk.valid() ? names_.module_set(task.chunk) : 0, task.op};
  }

  void use(const Task& task) { index_.emplace(key(task), 0); }

  std::vector<BoxColour> number() {
    std::vector<BoxColour> colours;
    for (auto& [key, index] : index_) {
      index = colours.size();
      const auto [set, op] = key;
      if (op == Op::Optimizer) {
        colours.push_back({"optimizer", kOptimizerColour});
      } else {
        colours.push_back({fmt::format("{} {}", name_of(op), names_.module_sets().at(set)),
                           pass_colour(set, op)});
      }
    }
    return colours;
  }

  [[nodiscard]] std::size_t of(const Task& task) const { return index_.at(key(task)); }

 private:
  const TaskNames& names_;
  std::map<Key, std::size_t> index_;
};

std::optional<MarkKind> mark_kind(Op op) {
  switch (op) {
    case Op::Transfer:
    case Op::Reshard:
      return MarkKind::Transfer;
    case Op::Collective:
    case Op::Gather:
    case Op::Scatter:
      return MarkKind::Collective;
    case Op::CopyOut:
      return MarkKind::CopyOut;
    case Op::CopyIn:
      return MarkKind::CopyIn;
    default:
      return std::nullopt;
  }
}

bool is_box(Op op) { return is_pass(op) || op == Op::Optimizer; }

/// Share of the makespan in which a row computes nothing; boxes may overlap.
std::vector<double> idle_shares(const TimelineRows& rows, const PlanRun& run) {
  std::vector<Duration> busy(rows.ranks.size());
  std::vector<Time> until(rows.ranks.size(), kStart);
  for (const Box& box : rows.boxes) {
    if (is_pass(run.graph.task(box.task).op)) {
      const Time from = std::max(box.start, until[box.row]);
      busy[box.row] += std::max(Duration{0}, box.end - from);
      until[box.row] = std::max(until[box.row], box.end);
    }
  }
  std::vector<double> idle(rows.ranks.size());
  const auto makespan = static_cast<double>(run.timeline.makespan.count());
  for (std::size_t row = 0; row < idle.size() && makespan > 0.0; ++row) {
    idle[row] = 1.0 - static_cast<double>(busy[row].count()) / makespan;
  }
  return idle;
}

/// The rows in which a task shows: those of the group of a collective, else that of its rank.
std::vector<std::size_t> rows_of(const PlanRun& run, const Task& task,
                                 const std::vector<std::optional<std::size_t>>& row_of_rank) {
  std::vector<std::size_t> rows;
  const auto add = [&](RankId rank) {
    if (rank.valid() && row_of_rank[rank.row()]) {
      rows.push_back(*row_of_rank[rank.row()]);
    }
  };
  if (task.group.valid()) {
    std::ranges::for_each(run.graph.placement.groups[task.group.row()], add);
  } else {
    add(task.rank);
  }
  return rows;
}

}  // namespace

TimelineRows timeline_rows(const PlanRun& run, const TaskNames& names, std::size_t limit) {
  TimelineRows rows;
  rows.ranks = ranks_to_show(run, limit);
  std::vector<std::optional<std::size_t>> row_of_rank(run.graph.placement.ranks.size());
  for (std::size_t row = 0; row < rows.ranks.size(); ++row) {
    row_of_rank[rows.ranks[row].row()] = row;
  }
  const std::map<TaskId, Half> half = halves(run.schedule);
  Colours colours(names);
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i) {
    const Task& task = run.graph.tasks[i];
    const auto [start, end] = run.timeline.spans[i];
    rows.end = std::max(rows.end, end);
    const std::optional<MarkKind> kind = mark_kind(task.op);
    for (const std::size_t row : rows_of(run, task, row_of_rank)) {
      if (is_box(task.op)) {
        const auto found = half.find(TaskId(i));
        colours.use(task);
        rows.boxes.push_back(
            {row, start, end, 0, found == half.end() ? Half::Whole : found->second, TaskId(i)});
      } else if (kind && end > start) {
        rows.marks.push_back({row, start, end, *kind});
      }
    }
  }
  rows.colours = colours.number();
  for (Box& box : rows.boxes) {
    box.colour = colours.of(run.graph.task(box.task));
  }
  std::ranges::sort(rows.boxes, {},
                    [](const Box& box) { return std::tuple(box.row, box.start, box.task); });
  std::ranges::sort(rows.marks, {}, [](const Mark& mark) {
    return std::tuple(mark.row, mark.start, mark.end, mark.kind);
  });
  rows.idle_share = idle_shares(rows, run);
  return rows;
}

}  // namespace dipsim
