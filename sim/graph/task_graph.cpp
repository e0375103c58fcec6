// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/task_graph.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace dipsim {

std::string_view name_of(Op op) {
  constexpr std::array<std::string_view, kOpCount> kNames = {
      "F",          "I",      "W",       "B",        "transfer", "reshard",
      "collective", "gather", "scatter", "copy-out", "copy-in",  "optimizer"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view name_of(RecomputeMode mode) {
  constexpr std::array<std::string_view, 5> kNames = {"keep", "selective", "full", "offload",
                                                      "mixed"};
  return kNames[static_cast<std::size_t>(mode)];
}

Duration time_of(const Strategy& strategy, Op op) {
  switch (op) {
    case Op::F:
      return strategy.f;
    case Op::I:
      return strategy.i;
    case Op::W:
      return strategy.w;
    case Op::B:
      return strategy.b;
    case Op::CopyOut:
    case Op::CopyIn:
      return strategy.copy;
    default:
      return Duration{0};
  }
}

Duration at_speed(const TaskGraph& graph, const Task& task, Duration nominal) {
  const double speed = graph.rank(task.rank).speed;
  if (speed == 1.0 || task.lane != Lane::Compute) {
    return nominal;
  }
  return Duration(std::llround(static_cast<double>(nominal.count()) / speed));
}

Duration duration_of(const TaskGraph& graph, TaskId id, std::span<const StrategyId> chosen) {
  const Task& task = graph.task(id);
  Duration nominal = task.fixed;
  if (task.pair.valid()) {
    nominal += time_of(graph.strategy(chosen[task.pair.row()]), task.op);
  }
  return at_speed(graph, task, nominal);
}

std::vector<Bytes> static_memory(const Placement& placement) {
  std::vector<Bytes> total;
  total.reserve(placement.ranks.size());
  for (const Rank& rank : placement.ranks) {
    total.push_back(rank.reserved);
  }
  std::set<std::pair<RankId, int>> counted;
  for (const Chunk& chunk : placement.chunks) {
    if (counted.emplace(chunk.rank, chunk.weight_set).second) {
      total[chunk.rank.row()] += chunk.weights + chunk.gradients + chunk.optimizer;
    }
  }
  return total;
}

std::string describe(const TaskGraph& graph, TaskId id) {
  const Task& task = graph.task(id);
  std::string text = fmt::format("{}", name_of(task.op));
  if (task.chunk.valid()) {
    text += fmt::format(" of chunk {}", task.chunk.value);
  }
  if (task.work.valid()) {
    const Work& work = graph.works[task.work.row()];
    if (work.module.valid()) {
      text += " (" + graph.module_names[work.module.row()] + ")";
    }
    if (!work.portions.empty()) {
      text += fmt::format(" on microbatch {}", work.portions.front().microbatch.value);
    }
  }
  text += fmt::format(" on rank {}", task.rank.value);
  if (task.op == Op::Transfer) {
    text += fmt::format(" to rank {}", task.peer.value);
  }
  return text;
}

namespace {

/// Collects the checks of validate() so that each rule is one line there.
class GraphCheck {
 public:
  explicit GraphCheck(const TaskGraph& graph) : graph_(graph) {}

  void require(bool holds, std::string_view table, std::size_t row, std::string_view rule) const {
    if (!holds) {
      fail_input(fmt::format("task graph: /{}/{}", table, row), std::string(rule));
    }
  }

  template <class Tag>
  [[nodiscard]] static bool within(Id<Tag> id, std::size_t size) {
    return id.valid() && id.row() < size;
  }

  template <class Tag>
  [[nodiscard]] static bool none_or_within(Id<Tag> id, std::size_t size) {
    return !id.valid() || id.row() < size;
  }

  void placement() const {
    const Placement& place = graph_.placement;
    for (std::size_t i = 0; i < place.ranks.size(); ++i) {
      const Rank& rank = place.ranks[i];
      require(!rank.cells.empty(), "ranks", i, "a rank needs at least one cell");
      const std::set<CellId> distinct(rank.cells.begin(), rank.cells.end());
      require(distinct.size() == rank.cells.size(), "ranks", i, "a cell stands twice");
      require(rank.tp >= 1 && rank.cp >= 1, "ranks", i, "tp and cp are at least 1");
      require(rank.memory_limit.count >= 0 && rank.reserved.count >= 0, "ranks", i,
              "negative memory limit or reserve");
      for (const CellId cell : rank.cells) {
        require(within(cell, place.cells.size()), "ranks", i, "unknown cell");
      }
      require(std::isfinite(rank.speed) && rank.speed > 0.0, "ranks", i, "speed must be above 0");
      const auto below = [&](int number) {
        return number >= 0 && static_cast<std::size_t>(number) < place.ranks.size();
      };
      require(below(rank.replica) && below(rank.position), "ranks", i,
              "replica and position are from 0 to the number of ranks - 1");
    }
    for (std::size_t i = 0; i < place.chunks.size(); ++i) {
      const Chunk& chunk = place.chunks[i];
      require(within(chunk.rank, place.ranks.size()), "chunks", i, "unknown rank");
      require(chunk.weights.count >= 0 && chunk.gradients.count >= 0 && chunk.optimizer.count >= 0,
              "chunks", i, "negative size");
      for (const LayerRange& range : chunk.layers) {
        require(within(range.module, graph_.module_names.size()), "chunks", i, "unknown module");
        require(range.first >= 0 && range.count >= 0, "chunks", i, "negative layer range");
      }
    }
    for (std::size_t i = 0; i < place.groups.size(); ++i) {
      for (const RankId rank : place.groups[i]) {
        require(within(rank, place.ranks.size()), "groups", i, "unknown rank");
      }
    }
  }

  void works() const {
    for (std::size_t i = 0; i < graph_.works.size(); ++i) {
      const Work& work = graph_.works[i];
      require(none_or_within(work.module, graph_.module_names.size()), "works", i,
              "unknown module");
      for (const Portion& portion : work.portions) {
        require(portion.microbatch.valid() && portion.first >= 0 && portion.count >= 0, "works", i,
                "negative portion");
      }
    }
  }

  void tasks() const {
    const std::size_t ranks = graph_.placement.ranks.size();
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      require(static_cast<std::size_t>(task.op) < kOpCount, "tasks", i, "unknown op");
      require(static_cast<std::size_t>(task.lane) < kLaneCount, "tasks", i, "unknown lane");
      require(within(task.rank, ranks), "tasks", i, "unknown rank");
      require(task.fixed.count() >= 0 && task.latency.count() >= 0 &&
                  task.fillable_idle.count() >= 0 && task.bytes.count >= 0 &&
                  task.transient.count >= 0,
              "tasks", i, "negative time or size");
      require(none_or_within(task.chunk, graph_.placement.chunks.size()), "tasks", i,
              "unknown chunk");
      require(none_or_within(task.work, graph_.works.size()), "tasks", i, "unknown work");
      require(none_or_within(task.pair, graph_.pairs.size()), "tasks", i, "unknown pair");
      require(none_or_within(task.group, graph_.placement.groups.size()), "tasks", i,
              "unknown group");
      if (is_pass(task.op)) {
        require(task.pair.valid() && task.lane == Lane::Compute, "tasks", i,
                "a pass belongs to a pair and runs on the compute lane");
      }
      if (task.op == Op::Transfer) {
        require(within(task.peer, ranks) && task.peer != task.rank, "tasks", i,
                "a transfer needs a peer other than its sender");
      }
    }
  }

  void pairs() const {
    for (std::size_t i = 0; i < graph_.pairs.size(); ++i) {
      const Pair& pair = graph_.pairs[i];
      const PairId id(i);
      const auto is = [&](TaskId task, Op op) {
        return within(task, graph_.tasks.size()) && graph_.task(task).op == op &&
               graph_.task(task).pair == id;
      };
      require(is(pair.f, Op::F), "pairs", i, "f is not its F task");
      require(!pair.b.valid() || is(pair.b, Op::B), "pairs", i, "b is not its B task");
      require(!pair.i.valid() || is(pair.i, Op::I), "pairs", i, "i is not its I task");
      require(!pair.w.valid() || is(pair.w, Op::W), "pairs", i, "w is not its W task");
      require(!(pair.b.valid() && (pair.i.valid() || pair.w.valid())), "pairs", i,
              "either b, or i and w");
      require(pair.copy_out.valid() == pair.copy_in.valid() &&
                  (!pair.copy_out.valid() ||
                   (is(pair.copy_out, Op::CopyOut) && is(pair.copy_in, Op::CopyIn))),
              "pairs", i, "copy_out and copy_in are both its copy tasks, or both none");
      require(!pair.copy_out.valid() || pair.b.valid() || pair.i.valid(), "pairs", i,
              "copies are for a backward: b or i");
      for (const TaskId task : {pair.b, pair.i, pair.w, pair.copy_out, pair.copy_in}) {
        require(!task.valid() || graph_.task(task).rank == graph_.task(pair.f).rank, "pairs", i,
                "all its tasks run on one rank");
      }
      require(pair.strategy_count > 0 && pair.first_strategy.valid() &&
                  pair.first_strategy.row() + static_cast<std::size_t>(pair.strategy_count) <=
                      graph_.strategies.size(),
              "pairs", i, "no or unknown strategies");
    }
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      if (is_pass(task.op) || task.op == Op::CopyOut || task.op == Op::CopyIn) {
        require(task.pair.valid(), "tasks", i, "a copy belongs to a pair");
        const Pair& pair = graph_.pair(task.pair);
        const TaskId id(i);
        require(pair.f == id || pair.b == id || pair.i == id || pair.w == id ||
                    pair.copy_out == id || pair.copy_in == id,
                "tasks", i, "its pair does not name this task");
      }
    }
    for (std::size_t i = 0; i < graph_.strategies.size(); ++i) {
      const Strategy& s = graph_.strategies[i];
      require(s.f.count() >= 0 && s.i.count() >= 0 && s.w.count() >= 0 && s.b.count() >= 0 &&
                  s.copy.count() >= 0 && s.f_to_i.count >= 0 && s.i_to_w.count >= 0 &&
                  s.rebuilt.count >= 0 && s.offload.count >= 0,
              "strategies", i, "negative time or size");
      require(s.offload <= s.f_to_i, "strategies", i, "offloads more than it holds");
      require(s.mode == RecomputeMode::Offload || (s.copy.count() == 0 && s.offload.count == 0),
              "strategies", i, "only the mode offload copies");
    }
  }

  void edges() const {
    std::vector<std::uint8_t> senders(graph_.tasks.size(), 0);
    for (std::size_t i = 0; i < graph_.edges.size(); ++i) {
      const Edge& edge = graph_.edges[i];
      require(within(edge.from, graph_.tasks.size()) && within(edge.to, graph_.tasks.size()) &&
                  edge.from != edge.to,
              "edges", i, "unknown task, or a task that waits for itself");
      const Task& from = graph_.task(edge.from);
      const Task& to = graph_.task(edge.to);
      require(from.op != Op::Transfer || to.group.valid() || to.rank == from.peer, "edges", i,
              "what waits for a transfer runs on the rank that receives it");
      if (to.op == Op::Transfer) {
        require(is_pass(from.op) && from.rank == to.rank && senders[edge.to.row()]++ == 0, "edges",
                i, "a transfer follows exactly one pass on its own rank");
      }
    }
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      require(graph_.tasks[i].op != Op::Transfer || senders[i] == 1, "tasks", i,
              "a transfer follows exactly one pass on its own rank");
    }
    copy_edges();
  }

  void copy_edges() const {
    std::vector<std::uint8_t> found(graph_.pairs.size(), 0);
    for (const Edge& edge : graph_.edges) {
      const PairId id = graph_.task(edge.from).pair;
      if (!id.valid() || id != graph_.task(edge.to).pair || !graph_.pair(id).copy_out.valid()) {
        continue;
      }
      const Pair& pair = graph_.pair(id);
      const bool in_to_backward =
          edge.from == pair.copy_in && (edge.to == pair.b || edge.to == pair.i);
      found[id.row()] |= static_cast<std::uint8_t>(
          (edge == Edge{pair.f, pair.copy_out} ? 1 : 0) |
          (edge == Edge{pair.copy_out, pair.copy_in} ? 2 : 0) | (in_to_backward ? 4 : 0));
    }
    for (std::size_t i = 0; i < graph_.pairs.size(); ++i) {
      require(!graph_.pairs[i].copy_out.valid() || found[i] == 7, "pairs", i,
              "copies need the edges f to copy_out to copy_in to b (or i)");
    }
  }

  void overlaps() const {
    for (std::size_t i = 0; i < graph_.overlaps.size(); ++i) {
      const Overlap& overlap = graph_.overlaps[i];
      const auto pass = [&](TaskId task) {
        return within(task, graph_.tasks.size()) && is_pass(graph_.task(task).op);
      };
      require(pass(overlap.f) && pass(overlap.b) && overlap.f != overlap.b &&
                  graph_.task(overlap.f).rank == graph_.task(overlap.b).rank,
              "overlaps", i, "two passes of one rank overlap");
      require(overlap.together.count() >= 0, "overlaps", i, "negative time");
    }
  }

  /// No evaluator can overflow when all tasks, one after the other, fit 62 bits, and all that they
  /// hold at once does.
  void totals() const {
    constexpr double kLimit = 4.6e18;
    double time = 0.0;
    double size = 0.0;
    for (const Task& task : graph_.tasks) {
      const double slowest = std::min(1.0, graph_.rank(task.rank).speed);
      double longest = number(task.fixed);
      if (task.pair.valid()) {
        for (const Strategy& s : graph_.allowed(graph_.pair(task.pair))) {
          longest += number(s.f) + number(s.i) + number(s.w) + number(s.b) + number(s.copy);
          size += number(s.f_to_i) + number(s.i_to_w) + number(s.rebuilt) + number(s.offload);
        }
      }
      time += longest / slowest + number(task.latency);
      size += number(task.transient);
    }
    for (const Overlap& overlap : graph_.overlaps) {
      time +=
          number(overlap.together) / std::min(1.0, graph_.rank(graph_.task(overlap.f).rank).speed);
    }
    for (const Rank& rank : graph_.placement.ranks) {
      size += number(rank.reserved);
    }
    for (const Chunk& chunk : graph_.placement.chunks) {
      size += number(chunk.weights) + number(chunk.gradients) + number(chunk.optimizer);
    }
    if (time > kLimit || size > kLimit) {
      fail_input("task graph", fmt::format("its tasks take {:.3g} ns and hold {:.3g} bytes in all; "
                                           "64-bit numbers allow {:g}",
                                           time, size, kLimit));
    }
  }

 private:
  static double number(Duration d) { return static_cast<double>(d.count()); }

  static double number(Bytes b) { return static_cast<double>(b.count); }

  const TaskGraph& graph_;
};

}  // namespace

void validate(const TaskGraph& graph) {
  const GraphCheck check(graph);
  check.placement();
  check.works();
  check.tasks();
  check.pairs();
  check.edges();
  check.overlaps();
  check.totals();
}

}  // namespace dipsim
