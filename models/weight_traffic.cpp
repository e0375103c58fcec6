// SPDX-License-Identifier: Apache-2.0
#include "models/weight_traffic.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dipsim {

namespace {

/// The passes of one replica in the order in which it runs them.
using Sequence = std::vector<TaskId>;

/// Pairs of each replica, work by work, along the chunks.
std::vector<std::vector<std::vector<PairId>>> pairs_by_work(const TaskGraph& graph) {
  const auto ranks = graph.placement.ranks.size();
  std::vector<std::vector<std::vector<PairId>>> replicas(ranks);
  std::vector<std::int32_t> row_of_work(graph.works.size(), -1);
  for (std::size_t p = 0; p < graph.pairs.size(); ++p) {
    const Task& forward = graph.task(graph.pairs[p].f);
    std::vector<std::vector<PairId>>& works = replicas[forward.rank.row()];
    std::int32_t& row = row_of_work[forward.work.row()];
    if (row < 0) {
      row = static_cast<std::int32_t>(works.size());
      works.emplace_back();
    }
    works[static_cast<std::size_t>(row)].push_back(PairId{p});
  }
  const auto chunk_of = [&](PairId pair) { return graph.task(graph.pair(pair).f).chunk; };
  for (std::vector<std::vector<PairId>>& works : replicas) {
    for (std::vector<PairId>& pairs : works) {
      std::ranges::sort(pairs, {}, chunk_of);
    }
    const auto work_of = [&](const std::vector<PairId>& pairs) {
      return graph.task(graph.pair(pairs.front()).f).work;
    };
    std::ranges::sort(works, {}, work_of);
  }
  return replicas;
}

std::vector<Sequence> sequences(const TaskGraph& graph) {
  std::vector<Sequence> all;
  for (const std::vector<std::vector<PairId>>& works : pairs_by_work(graph)) {
    Sequence& sequence = all.emplace_back();
    for (const std::vector<PairId>& pairs : works) {
      for (const PairId pair : pairs) {
        sequence.push_back(graph.pair(pair).f);
      }
      for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
        if (graph.pair(*pair).b.valid()) {
          sequence.push_back(graph.pair(*pair).b);
        }
      }
    }
  }
  return all;
}

void check(const TaskGraph& graph, const std::vector<Sequence>& all) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (graph.placement.ranks[r].position != 0) {
      fail_input("schedule fsdp", "a replica of several pipeline ranks; it needs pp 1");
    }
    if (all[r].size() != all.front().size()) {
      fail_input("schedule fsdp",
                 fmt::format("replica {} has {} passes, replica 0 has {}; all gather together, so "
                             "each needs as many microbatches",
                             r, all[r].size(), all.front().size()));
    }
  }
}

Task collective(Op op, const Task& pass, GroupId group, const TransferCost& cost) {
  return {.op = op,
          .lane = Lane::Comm,
          .rank = pass.rank,
          .chunk = pass.chunk,
          .group = group,
          .fixed = cost.occupied + cost.latency,
          .bytes = cost.bytes};
}

/// The optimizer step of each rank; none where it has none.
std::vector<TaskId> optimizer_steps(const TaskGraph& graph) {
  std::vector<TaskId> steps(graph.placement.ranks.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (graph.tasks[t].op == Op::Optimizer) {
      steps[graph.tasks[t].rank.row()] = TaskId{t};
    }
  }
  return steps;
}

}  // namespace

void add_weight_traffic(TaskGraph& graph, const CostSource& costs, bool reshard) {
  const std::vector<Sequence> all = sequences(graph);
  check(graph, all);
  const std::vector<TaskId> steps = optimizer_steps(graph);
  const GroupId group{graph.placement.groups.size()};
  graph.placement.groups.add_row();
  for (std::size_t r = 0; r < all.size(); ++r) {
    graph.placement.groups.push_back(RankId{r});
  }
  const auto cost_of = [&](const Task& pass, Op op) {
    const Chunk& chunk = graph.placement.chunks[pass.chunk.row()];
    return op == Op::Gather ? costs.weight_gather(chunk) : costs.gradient_scatter(chunk);
  };
  for (const Op op : {Op::Gather, Op::Scatter}) {  // at one instant gathers go first, by their ids
    for (std::size_t k = 0; k < all.front().size(); ++k) {
      const Task pass = graph.task(all.front()[k]);
      const bool wanted = op == Op::Gather ? pass.op == Op::F || reshard : pass.op == Op::B;
      const TransferCost cost = wanted ? cost_of(pass, op) : TransferCost{};
      if (cost.bytes.count == 0) {
        continue;
      }
      const TaskId id{graph.tasks.size()};
      graph.tasks.push_back(collective(op, pass, group, cost));
      for (const Sequence& sequence : all) {
        if (op == Op::Scatter) {
          graph.edges.push_back({sequence[k], id});
          graph.tasks[sequence[k].row()].transient += cost.bytes;
          if (k + 1 < sequence.size()) {  // scattered beside the next pass
            graph.tasks[sequence[k + 1].row()].transient += cost.bytes;
          }
          continue;
        }
        if (k >= 2) {
          graph.edges.push_back({sequence[k - 2], id});
        }
        graph.edges.push_back({id, sequence[k]});
        graph.tasks[sequence[k].row()].transient += cost.bytes;
        if (k > 0) {  // prefetched beside the pass before it
          graph.tasks[sequence[k - 1].row()].transient += cost.bytes;
        }
      }
      for (const TaskId step : steps) {
        if (op == Op::Scatter && step.valid()) {
          graph.edges.push_back({id, step});
        }
      }
    }
  }
}

}  // namespace dipsim
