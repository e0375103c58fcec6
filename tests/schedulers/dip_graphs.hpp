// SPDX-License-Identifier: Apache-2.0
// Task graphs of multimodal pipelines, written by hand for the tests of the DIP planner.
#pragma once

#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::test {

/// A slice of one module on one microbatch. Every chunk of the module costs the same.
struct PipelineWork {
  int microbatch = 0;
  int module = 0;
  std::vector<Strategy> strategies;
  bool has_backward = true;
  bool split = false;  ///< the backward as I and W instead of B
};

/// Modules in flow order, each spread over all ranks in `segments` sweeps. The last module waits
/// for the works of all others on the same microbatch.
struct PipelineSpec {
  int ranks = 2;
  std::vector<int> segments = {1};  ///< per module
  std::vector<PipelineWork> works;
  Bytes memory_limit{std::int64_t{1} << 60};
  Duration occupied{0};
  Duration latency{0};
  int replica = 0;
};

inline PipelineWork work(int microbatch, int module, std::vector<Strategy> strategies) {
  return {.microbatch = microbatch, .module = module, .strategies = std::move(strategies)};
}

inline Strategy strategy(RecomputeMode mode, std::int64_t f, std::int64_t b, std::int64_t held,
                         std::int64_t rebuilt = 0) {
  Strategy s;
  s.mode = mode;
  s.f = Duration{f};
  s.b = Duration{b};
  s.f_to_i = Bytes{held};
  s.rebuilt = Bytes{rebuilt};
  return s;
}

inline Strategy keep(std::int64_t f, std::int64_t b, std::int64_t held) {
  return strategy(RecomputeMode::Keep, f, b, held);
}

/// With a split backward: I takes `i`, W takes `w`, and in between `kept` bytes stay; B is the sum.
inline Strategy split_strategy(RecomputeMode mode, std::int64_t f, std::int64_t i, std::int64_t w,
                               std::int64_t held, std::int64_t kept, std::int64_t rebuilt = 0) {
  Strategy s = strategy(mode, f, i + w, held, rebuilt);
  s.i = Duration{i};
  s.w = Duration{w};
  s.i_to_w = Bytes{kept};
  return s;
}

/// Behind each strategy the one that does W inside I, as Draft::weights_at_once asks for.
inline std::vector<Strategy> with_twins(const std::vector<Strategy>& strategies) {
  std::vector<Strategy> all;
  for (const Strategy& split : strategies) {
    all.push_back(split);
    Strategy& at_once = all.emplace_back(split);
    at_once.i = split.b;
    at_once.w = Duration{0};
    at_once.i_to_w = Bytes{};
  }
  return all;
}

/// Adds pipelines to a graph, replica by replica.
class PipelineBuilder {
 public:
  explicit PipelineBuilder(TaskGraph& graph) : graph_(graph) {}

  void add(const PipelineSpec& spec) {
    spec_ = &spec;
    first_rank_ = graph_.placement.ranks.size();
    add_placement();
    std::vector<std::vector<PairId>> flows;
    flows.reserve(spec.works.size());
    for (const PipelineWork& work : spec.works) {
      flows.push_back(add_work(work));
    }
    const int backbone = static_cast<int>(spec.segments.size()) - 1;
    for (std::size_t a = 0; a < spec.works.size(); ++a) {
      for (std::size_t b = 0; b < spec.works.size(); ++b) {
        const PipelineWork& from = spec.works[a];
        const PipelineWork& to = spec.works[b];
        if (from.module != backbone && to.module == backbone && from.microbatch == to.microbatch) {
          connect(flows[a].back(), flows[b].front());
        }
      }
    }
  }

 private:
  void add_placement() {
    for (int r = 0; r < spec_->ranks; ++r) {
      Rank rank;
      rank.replica = spec_->replica;
      rank.position = r;
      rank.cells = {CellId(graph_.placement.cells.size())};
      rank.memory_limit = spec_->memory_limit;
      graph_.placement.cells.add_row();
      graph_.placement.ranks.push_back(rank);
    }
    chunk_of_module_.clear();
    for (std::size_t m = 0; m < spec_->segments.size(); ++m) {
      if (graph_.module_names.size() <= m) {
        graph_.module_names.push_back("module" + std::to_string(m));
      }
      chunk_of_module_.push_back(graph_.placement.chunks.size());
      for (int c = 0; c < spec_->ranks * spec_->segments[m]; ++c) {
        Chunk chunk;
        chunk.layers = {{.module = ModuleId(m), .first = c, .count = 1}};
        chunk.rank = RankId(first_rank_ + static_cast<std::size_t>(c % spec_->ranks));
        chunk.weight_set = static_cast<int>(graph_.placement.chunks.size());
        graph_.placement.chunks.push_back(chunk);
      }
    }
  }

  TaskId add_task(Op op, ChunkId chunk, WorkId work, PairId pair) {
    Task task;
    task.op = op;
    task.rank = graph_.chunk(chunk).rank;
    task.chunk = chunk;
    task.work = work;
    task.pair = pair;
    graph_.tasks.push_back(task);
    return TaskId(graph_.tasks.size() - 1);
  }

  /// One pair per chunk, connected along the flow.
  std::vector<PairId> add_work(const PipelineWork& spec) {
    Work work;
    work.replica = spec_->replica;
    work.module = ModuleId(static_cast<std::size_t>(spec.module));
    work.portions = {{.microbatch = MicrobatchId(spec.microbatch), .first = 0, .count = 1}};
    const WorkId id(graph_.works.size());
    graph_.works.push_back(work);
    const StrategyId first(graph_.strategies.size());
    graph_.strategies.insert(graph_.strategies.end(), spec.strategies.begin(),
                             spec.strategies.end());
    const auto m = static_cast<std::size_t>(spec.module);
    const auto chunks =
        static_cast<std::size_t>(spec_->ranks) * static_cast<std::size_t>(spec_->segments[m]);
    std::vector<PairId> flow;
    for (std::size_t c = 0; c < chunks; ++c) {
      const ChunkId chunk(chunk_of_module_[m] + c);
      const PairId pair_id(graph_.pairs.size());
      Pair pair;
      pair.first_strategy = first;
      pair.strategy_count = static_cast<std::int32_t>(spec.strategies.size());
      pair.f = add_task(Op::F, chunk, id, pair_id);
      if (spec.has_backward && spec.split) {
        pair.i = add_task(Op::I, chunk, id, pair_id);
        pair.w = add_task(Op::W, chunk, id, pair_id);
        graph_.edges.push_back({pair.f, pair.i});
        graph_.edges.push_back({pair.i, pair.w});
      } else if (spec.has_backward) {
        pair.b = add_task(Op::B, chunk, id, pair_id);
        graph_.edges.push_back({pair.f, pair.b});
      }
      graph_.pairs.push_back(pair);
      flow.push_back(pair_id);
      if (c > 0) {
        connect(flow[c - 1], flow[c]);
      }
    }
    return flow;
  }

  void connect(PairId from, PairId to) {
    const Pair a = graph_.pair(from);
    const Pair b = graph_.pair(to);
    connect(a.f, b.f);
    const TaskId backward_a = a.b.valid() ? a.b : a.i;
    const TaskId backward_b = b.b.valid() ? b.b : b.i;
    if (backward_a.valid() && backward_b.valid()) {
      connect(backward_b, backward_a);
    }
  }

  void connect(TaskId from, TaskId to) {
    const RankId rank = graph_.task(from).rank;
    const RankId peer = graph_.task(to).rank;
    if (rank == peer) {
      graph_.edges.push_back({from, to});
      return;
    }
    Task task;
    task.op = Op::Transfer;
    task.lane = Lane::Comm;
    task.rank = rank;
    task.peer = peer;
    task.work = graph_.task(from).work;
    task.fixed = spec_->occupied;
    task.latency = spec_->latency;
    graph_.tasks.push_back(task);
    const TaskId transfer(graph_.tasks.size() - 1);
    graph_.edges.push_back({from, transfer});
    graph_.edges.push_back({transfer, to});
  }

  TaskGraph& graph_;
  const PipelineSpec* spec_ = nullptr;
  std::size_t first_rank_ = 0;
  std::vector<std::size_t> chunk_of_module_;
};

inline TaskGraph pipeline(const PipelineSpec& spec) {
  TaskGraph graph;
  PipelineBuilder(graph).add(spec);
  return graph;
}

}  // namespace dipsim::test
