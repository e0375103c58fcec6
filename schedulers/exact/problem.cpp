// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/problem.hpp"

#include "schedulers/exact/coverage.hpp"
#include "schedulers/exact/memory_steps.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/adjacency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace dipsim::exact {

namespace {

class Maker {
 public:
  Maker(const TaskGraph& graph, std::span<const StrategyId> chosen)
      : graph_(graph), chosen_(chosen), successors_(graph), number_(graph.tasks.size(), kNone) {}

  Problem make() {
    find_links();
    find_inputs();
    make_ranks();
    sort_passes();
    for (Index p = 0; p < problem_.passes.size(); ++p) {
      add_connections(p);
    }
    set_tails();
    return std::move(problem_);
  }

 private:
  /// A way from one pass to another, as seen by the receiver.
  struct Way {
    TaskId from;
    Nanoseconds delay = 0;
    bool remote = false;
  };

  [[nodiscard]] Nanoseconds time_of(TaskId task) const {
    return duration_of(graph_, task, chosen_).count();
  }

  /// Numbers the ordered pairs of ranks between which a transfer can queue behind another.
  void find_links() {
    for (const Task& task : graph_.tasks) {
      if (task.op == Op::Transfer && task.fixed.count() > 0) {
        link_.try_emplace({task.rank, task.peer}, static_cast<Index>(link_.size()));
      }
    }
  }

  void find_inputs() {
    ways_.resize(graph_.tasks.size());
    waited_for_.resize(graph_.tasks.size(), 0);
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const TaskId from(i);
      if (!is_pass(graph_.task(from).op)) {
        continue;
      }
      for (const TaskId next : successors_.of(from)) {
        const Task& follower = graph_.task(next);
        if (is_pass(follower.op)) {
          ways_[next.row()].push_back({from, 0, follower.rank != graph_.task(from).rank});
          waited_for_[i] = 1;
        } else if (follower.op == Op::Transfer) {
          const Nanoseconds delay = (follower.fixed + follower.latency).count();
          for (const TaskId target : successors_.of(next)) {
            ways_[target.row()].push_back({from, delay, true});
          }
          waited_for_[i] = 1;
        }
      }
    }
  }

  void make_ranks() {
    const std::vector<Rank>& ranks = graph_.placement.ranks;
    const std::vector<Bytes> fixed = static_memory(graph_.placement);
    steps_ = memory_steps(graph_, chosen_);
    std::vector<ByteCount> most(ranks.size(), 0);   // ever held
    std::vector<ByteCount> needs(ranks.size(), 0);  // on top
    rank_.assign(ranks.size(), kNone);
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      if (is_pass(task.op)) {
        most[task.rank.row()] += std::max<ByteCount>(0, steps_[i].change);
        needs[task.rank.row()] = std::max(needs[task.rank.row()], steps_[i].needs);
        rank_[task.rank.row()] = 0;  // it has passes
      }
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const ByteCount room = (ranks[r].memory_limit - fixed[r]).count;
      if (room < 0) {
        fail_infeasible(kWhere,
                        fmt::format("rank {} holds {} bytes all the time, above its limit of {}", r,
                                    fixed[r].count, ranks[r].memory_limit.count));
      }
      full_.push_back(most[r] + needs[r] > room ? 1 : 0);
      problem_.memory_matters = problem_.memory_matters || full_.back() != 0;
      if (rank_[r] != kNone) {
        rank_[r] = static_cast<Index>(problem_.ranks.size());
        problem_.ranks.push_back({.rank = RankId(r), .room = room, .by_tail = {}});
      }
    }
  }

  /// Nothing waits for it, and it needs no more memory while it runs than it holds anyway.
  [[nodiscard]] bool is_filler(TaskId task) const {
    const bool scratch =
        graph_.task(task).transient.count != 0 && full_[graph_.task(task).rank.row()] != 0;
    return graph_.task(task).op == Op::W && waited_for_[task.row()] == 0 && !scratch &&
           time_of(task) > 0 && std::ranges::none_of(ways_[task.row()], &Way::remote);
  }

  void sort_passes() {
    std::vector<TaskId> order = topological_order();
    std::vector<TaskId> fillers;
    for (const TaskId task : order) {
      if (is_filler(task)) {
        fillers.push_back(task);
      } else {
        require_countable(task);
        number_[task.row()] = static_cast<Index>(problem_.passes.size());
        problem_.passes.push_back({.task = task,
                                   .rank = rank_[graph_.task(task).rank.row()],
                                   .time = time_of(task),
                                   .needs = steps_[task.row()].needs,
                                   .change = steps_[task.row()].change});
      }
    }
    if (problem_.passes.size() > kMaxPasses || fillers.size() > kMaxPasses) {
      fail_input(kWhere, fmt::format("{} passes and {} W that nothing waits for; allowed: up to {} "
                                     "of each",
                                     problem_.passes.size(), fillers.size(), kMaxPasses));
    }
    std::ranges::stable_sort(fillers, [this](TaskId a, TaskId b) {
      return std::pair(graph_.task(a).rank, -time_of(a)) <
             std::pair(graph_.task(b).rank, -time_of(b));
    });
    for (const TaskId task : fillers) {
      add_filler(task);
    }
  }

  /// By number of predecessors left, the lowest task first where several are free (Kahn 1962).
  std::vector<TaskId> topological_order() {
    std::vector<std::size_t> left(graph_.tasks.size());
    std::vector<std::vector<TaskId>> followers(graph_.tasks.size());
    std::vector<TaskId> order;
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      left[i] = ways_[i].size();
      for (const Way& way : ways_[i]) {
        followers[way.from.row()].emplace_back(i);
      }
      if (is_pass(graph_.tasks[i].op) && left[i] == 0) {
        order.emplace_back(i);
      }
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
      for (const TaskId next : followers[order[at].row()]) {
        if (--left[next.row()] == 0 && is_pass(graph_.task(next).op)) {
          order.push_back(next);
        }
      }
    }
    return order;
  }

  void require_countable(TaskId task) const {
    const MemoryStep step = steps_[task.row()];
    if (time_of(task) == 0 && full_[graph_.task(task).rank.row()] != 0 &&
        (step.needs != 0 || step.change != 0)) {
      fail_input(kWhere, describe(graph_, task) +
                             " takes no time but changes the memory of a rank that may become "
                             "full; allowed: at least 1 ns");
    }
  }

  void add_filler(TaskId task) {
    const auto number = static_cast<Index>(problem_.fillers.size());
    Filler filler{.task = task,
                  .rank = rank_[graph_.task(task).rank.row()],
                  .time = time_of(task),
                  .frees = -steps_[task.row()].change};
    for (const Way& way : ways_[task.row()]) {
      filler.before |= bit(number_[way.from.row()]);
    }
    problem_.ranks[filler.rank].fillers |= bit(number);
    problem_.fillers.push_back(filler);
  }

  void add_connections(Index p) {
    Pass& pass = problem_.passes[p];
    problem_.ranks[pass.rank].passes |= bit(p);
    problem_.inputs.add_row();
    for (const Way& way : ways_[pass.task.row()]) {
      const Index from = number_[way.from.row()];
      pass.before |= bit(from);
      if (way.remote) {
        pass.remote |= bit(from);
        problem_.passes[from].feeds |= bit(p);
      }
      problem_.inputs.push_back({.from = from, .delay = way.delay});
    }
    problem_.deliveries.add_row();
    for (const TaskId next : successors_.of(pass.task)) {
      const Task& follower = graph_.task(next);
      if (follower.op == Op::Transfer) {
        add_transfer(next, follower);
      } else if (is_pass(follower.op) && follower.rank != graph_.task(pass.task).rank) {
        problem_.deliveries.push_back({.target = number_[next.row()]});
      }
    }
  }

  void add_transfer(TaskId id, const Task& transfer) {
    const auto link = link_.find({transfer.rank, transfer.peer});
    Delivery delivery{.link = link == link_.end() ? kNone : link->second,
                      .occupied = transfer.fixed.count(),
                      .latency = transfer.latency.count()};
    for (const TaskId target : successors_.of(id)) {
      if (is_pass(graph_.task(target).op)) {
        delivery.target = number_[target.row()];
        problem_.deliveries.push_back(delivery);
        delivery.repeated = true;
      }
    }
    if (!delivery.repeated) {
      problem_.deliveries.push_back(delivery);
    }
  }

  void set_tails() {
    for (const auto& [ranks, link] : link_) {
      problem_.link_sender.resize(link_.size());
      problem_.link_sender[link] = rank_[ranks.first.row()];
    }
    for (const Filler& filler : problem_.fillers) {
      for_each(filler.before, [&](Index p) {
        problem_.passes[p].tail = std::max(problem_.passes[p].tail, filler.time);
      });
    }
    for (std::size_t p = problem_.passes.size(); p-- > 0;) {
      const Pass& pass = problem_.passes[p];
      for (const Input& input : problem_.inputs[p]) {
        Nanoseconds& tail = problem_.passes[input.from].tail;
        tail = std::max(tail, input.delay + pass.time + pass.tail);
      }
    }
    for (RankPasses& rank : problem_.ranks) {
      for_each(rank.passes, [&](Index p) { rank.by_tail.push_back(p); });
      std::ranges::stable_sort(rank.by_tail, [&](Index a, Index b) {
        return problem_.passes[a].tail > problem_.passes[b].tail;
      });
      for (std::size_t place = 0; place < rank.by_tail.size(); ++place) {
        problem_.place_by_tail[rank.by_tail[place]] = static_cast<Index>(place);
      }
    }
  }

  const TaskGraph& graph_;
  std::span<const StrategyId> chosen_;
  Successors successors_;
  std::map<std::pair<RankId, RankId>, Index> link_;
  std::vector<std::vector<Way>> ways_;    ///< per task: from the passes that it waits for
  std::vector<std::uint8_t> waited_for_;  ///< per task
  std::vector<MemoryStep> steps_;         ///< per task
  std::vector<std::uint8_t> full_;        ///< per rank: it can't hold everything at once
  std::vector<Index> rank_;               ///< per rank: its number among those with passes
  std::vector<Index> number_;             ///< per task: of the pass
  Problem problem_;
};

}  // namespace

Problem make_problem(const TaskGraph& graph, std::span<const StrategyId> chosen) {
  require_covered(graph, chosen);
  return Maker(graph, chosen).make();
}

}  // namespace dipsim::exact
