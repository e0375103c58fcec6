// SPDX-License-Identifier: Apache-2.0
#include "tests/support/memory_needs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace dipsim::test {

TaskId reader_of(const Pair& pair) {
  for (const TaskId id : {pair.b, pair.i, pair.w}) {
    if (id.valid()) {
      return id;
    }
  }
  return pair.f;
}

namespace {

/// What goes to host memory before this pass, or comes back behind it.
Bytes offloaded(const TaskGraph& graph, const Schedule& schedule, TaskId OffloadWindow::* side,
                TaskId pass) {
  Bytes bytes;
  for (const OffloadWindow& window : schedule.offloads) {
    if (window.*side == pass) {
      bytes += graph.strategy(schedule.chosen[window.pair.row()]).offload;
    }
  }
  return bytes;
}

}  // namespace

std::vector<Bytes> peaks_in_order(const TaskGraph& graph, const Schedule& schedule) {
  std::vector<Bytes> peaks = static_memory(graph.placement);
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    Bytes held = peaks[rank];
    for (const Slot& slot : schedule.compute[graph.placement.ranks[rank].cells.front().row()]) {
      const Task& task = graph.task(slot.task);
      const Pair& pair = graph.pair(task.pair);
      const Strategy& strategy = graph.strategy(schedule.chosen[task.pair.row()]);
      held -= offloaded(graph, schedule, &OffloadWindow::freed_before, slot.task);
      Bytes during = held + task.transient;
      if (task.op == Op::F) {
        during += strategy.f_to_i;
        held += strategy.f_to_i;
      } else if (task.op != Op::W) {
        during += strategy.rebuilt;
        held += pair.w.valid() ? strategy.i_to_w : Bytes{};
      } else if (pair.i.valid()) {
        held -= strategy.i_to_w;
      }
      peaks[rank] = std::max(peaks[rank], during);
      if (slot.task == reader_of(pair)) {
        held -= strategy.f_to_i;
      }
      held += offloaded(graph, schedule, &OffloadWindow::fetched_after, slot.task);
      peaks[rank] = std::max(peaks[rank], held);
    }
  }
  return peaks;
}

Schedule one_after_the_other(const TaskGraph& graph, const std::vector<StrategyId>& chosen) {
  using Key = std::tuple<MicrobatchId, ModuleId, WorkId, ChunkId>;
  const auto key_of = [&](const Pair& pair) {
    const Task& f = graph.task(pair.f);
    const Work& work = graph.works[f.work.row()];
    return Key(work.portions.front().microbatch, work.module, f.work, f.chunk);
  };
  std::vector<std::vector<Pair>> of_cell(graph.placement.cells.size());
  for (const Pair& pair : graph.pairs) {
    of_cell[graph.rank(graph.task(pair.f).rank).cells.front().row()].push_back(pair);
  }
  Schedule schedule{.compute = {}, .comm = {}, .chosen = chosen, .offloads = {}};
  for (std::vector<Pair>& pairs : of_cell) {
    schedule.compute.add_row();
    std::ranges::sort(pairs, {}, key_of);
    for (auto first = pairs.begin(); first != pairs.end();) {
      const auto last = std::find_if(first, pairs.end(), [&](const Pair& pair) {
        return std::get<0>(key_of(pair)) != std::get<0>(key_of(*first));
      });
      for (auto pair = first; pair != last; ++pair) {
        schedule.compute.push_back({.task = pair->f, .together = {}});
      }
      std::sort(first, last, [&](const Pair& a, const Pair& b) {
        const auto [microbatch_a, module_a, work_a, chunk_a] = key_of(a);
        const auto [microbatch_b, module_b, work_b, chunk_b] = key_of(b);
        return std::tuple(module_b, work_a, chunk_b) < std::tuple(module_a, work_b, chunk_a);
      });
      for (; first != last; ++first) {
        for (const TaskId id : {first->b, first->i, first->w}) {
          if (id.valid()) {
            schedule.compute.push_back({.task = id, .together = {}});
          }
        }
      }
    }
  }
  return schedule;
}

std::vector<StrategyId> most_saving(const TaskGraph& graph) {
  std::vector<StrategyId> chosen;
  for (const Pair& pair : graph.pairs) {
    const auto allowed = graph.allowed(pair);
    const auto best = std::ranges::min_element(allowed, {}, [&](const Strategy& s) {
      return std::tuple(s.f_to_i, pair.i.valid() ? s.i_to_w : Bytes{}, s.f + s.b, s.rebuilt);
    });
    chosen.emplace_back(pair.first_strategy.row() +
                        static_cast<std::size_t>(best - allowed.begin()));
  }
  return chosen;
}

std::vector<Bytes> everything_kept(const TaskGraph& graph) {
  std::vector<Bytes> most = static_memory(graph.placement);
  std::vector<Bytes> on_top(most.size());
  for (const Pair& pair : graph.pairs) {
    const std::size_t rank = graph.task(pair.f).rank.row();
    Bytes held{};
    for (const Strategy& s : graph.allowed(pair)) {
      held = std::max({held, s.f_to_i, s.i_to_w});
      on_top[rank] = std::max(on_top[rank], s.rebuilt + graph.task(pair.f).transient);
    }
    most[rank] += held;
  }
  for (std::size_t rank = 0; rank < most.size(); ++rank) {
    most[rank] += on_top[rank];
  }
  return most;
}

std::vector<Bytes> tight_limits(const TaskGraph& graph, const std::vector<StrategyId>& chosen,
                                RandomStream& random) {
  const std::vector<Bytes> one = peaks_in_order(graph, one_after_the_other(graph, chosen));
  const std::vector<Bytes> all = everything_kept(graph);
  const std::int64_t kind = random.integer(0, 3);
  const double room = kind == 0 ? 0.0 : random.uniform() * (kind == 3 ? 1.0 : 0.3);
  std::vector<Bytes> limits;
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    limits.push_back(one[rank] +
                     round_to_bytes(room * static_cast<double>((all[rank] - one[rank]).count)));
  }
  if (random.uniform() < 0.5) {
    std::ranges::fill(limits, std::ranges::max(limits));
  }
  if (random.uniform() < 0.1) {
    const auto rank =
        static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(limits.size()) - 1));
    const std::int64_t less = random.integer(1, std::max<std::int64_t>(1, one[rank].count / 4));
    limits[rank] = Bytes{std::max<std::int64_t>(0, one[rank].count - less)};
  }
  return limits;
}

}  // namespace dipsim::test
