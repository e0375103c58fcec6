// SPDX-License-Identifier: Apache-2.0
// Results made up by hand: pipelines whose times follow from a recurrence, and comparisons whose
// figures can be checked on paper.
#pragma once

#include "sim/graph/memory.hpp"
#include "sim/graph/results.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::test {

inline constexpr std::int64_t kGib = std::int64_t{1} << 30U;

inline Duration ms(std::int64_t count) { return std::chrono::milliseconds(count); }

/// All forwards, then all backwards, of one module on `ranks` ranks: F takes 2 ms + 1 ns, B 4 ms, a
/// transfer 0.25 ms and arrives 0.5 ms later.
class GPipe {
 public:
  GPipe(int ranks, int microbatches, std::string module = "llm") {
    run_.graph.module_names = {std::move(module)};
    Strategy keep;
    keep.f = ms(2) + Duration{1};
    keep.b = ms(4);
    keep.f_to_i = Bytes{kGib};
    run_.graph.strategies = {keep};
    add_ranks(ranks);
    add_works(microbatches);
    for (int rank = 0; rank < ranks; ++rank) {
      for (int m = 0; m < microbatches; ++m) {
        add_forward(rank, m);
      }
    }
    for (int rank = ranks - 1; rank >= 0; --rank) {
      for (int m = 0; m < microbatches; ++m) {
        add_backward(rank, m);
      }
    }
    finish();
  }

  [[nodiscard]] const PlanRun& run() const { return run_; }

 private:
  void add_ranks(int count) {
    Placement& placement = run_.graph.placement;
    for (int i = 0; i < count; ++i) {
      Rank rank;
      rank.position = i;
      rank.cells = {CellId(i)};
      rank.memory_limit = Bytes{8 * kGib};
      placement.ranks.push_back(rank);
      placement.cells.add_row(std::vector<GpuId>{GpuId(i)});
      Chunk chunk;
      chunk.layers = {{ModuleId(0), i, 1}};
      chunk.rank = RankId(i);
      chunk.weights = Bytes{2 * kGib};
      placement.chunks.push_back(chunk);
    }
    rank_free_.resize(static_cast<std::size_t>(count));
    order_.resize(static_cast<std::size_t>(count));
  }

  void add_works(int count) {
    for (int m = 0; m < count; ++m) {
      Work work;
      work.module = ModuleId(0);
      work.portions = {{MicrobatchId(m), 0, 1}};
      run_.graph.works.push_back(work);
    }
    arrival_.resize(static_cast<std::size_t>(count));
  }

  /// A pass as soon as its rank is free and its input is there.
  TaskId add_pass(Op op, int rank, int m, PairId pair, Duration takes) {
    Task task;
    task.op = op;
    task.rank = RankId(rank);
    task.chunk = ChunkId(rank);
    task.work = WorkId(m);
    task.pair = pair;
    const TaskId id(run_.graph.tasks.size());
    run_.graph.tasks.push_back(task);
    Time& free = rank_free_[static_cast<std::size_t>(rank)];
    const Time start = std::max(free, arrival_[static_cast<std::size_t>(m)]);
    free = start + takes;
    spans_.push_back({start, free});
    arrival_[static_cast<std::size_t>(m)] = free;
    order_[static_cast<std::size_t>(rank)].push_back({id, TaskId()});
    return id;
  }

  void add_transfer(TaskId from, int rank, int peer, int m) {
    Task task;
    task.op = Op::Transfer;
    task.lane = Lane::Comm;
    task.rank = RankId(rank);
    task.peer = RankId(peer);
    task.work = WorkId(m);
    task.fixed = std::chrono::microseconds(250);
    task.latency = std::chrono::microseconds(500);
    task.bytes = Bytes{1000};
    const TaskId id(run_.graph.tasks.size());
    run_.graph.tasks.push_back(task);
    run_.graph.edges.push_back({from, id});
    const Time start = arrival_[static_cast<std::size_t>(m)];
    const Time end = start + task.fixed + task.latency;
    spans_.push_back({start, end});
    arrival_[static_cast<std::size_t>(m)] = end;
    pending_ = id;
  }

  void add_forward(int rank, int m) {
    const PairId pair(run_.graph.pairs.size());
    if (rank > 0) {
      add_transfer(run_.graph.pairs[pair.row() - arrival_.size()].f, rank - 1, rank, m);
    }
    const TaskId id = add_pass(Op::F, rank, m, pair, run_.graph.strategies[0].f);
    if (rank > 0) {
      run_.graph.edges.push_back({pending_, id});
    }
    Pair made;
    made.f = id;
    made.first_strategy = StrategyId(0);
    made.strategy_count = 1;
    run_.graph.pairs.push_back(made);
    run_.schedule.chosen.emplace_back(0);
  }

  void add_backward(int rank, int m) {
    const auto ranks = static_cast<int>(rank_free_.size());
    const PairId pair(static_cast<std::size_t>(rank) * arrival_.size() +
                      static_cast<std::size_t>(m));
    if (rank + 1 < ranks) {
      add_transfer(run_.graph.pairs[pair.row() + arrival_.size()].b, rank + 1, rank, m);
    }
    const TaskId id = add_pass(Op::B, rank, m, pair, run_.graph.strategies[0].b);
    run_.graph.edges.push_back({rank + 1 < ranks ? pending_ : run_.graph.pairs[pair.row()].f, id});
    run_.graph.pairs[pair.row()].b = id;
  }

  void finish() {
    for (const std::vector<Slot>& slots : order_) {
      run_.schedule.compute.add_row(slots);
    }
    Time last = kStart;
    for (const Span& span : spans_) {
      last = std::max(last, span.end);
    }
    run_.timeline.spans = spans_;
    run_.timeline.makespan = last - kStart;
    run_.timeline.iteration = last - kStart;
    run_.timeline.memory = memory_curves(run_.graph, run_.schedule, spans_);
  }

  PlanRun run_;
  std::vector<Time> rank_free_;
  std::vector<Time> arrival_;  ///< per microbatch: when the output of its last task is there
  std::vector<Span> spans_;
  std::vector<std::vector<Slot>> order_;
  TaskId pending_;
};

inline IterationResult iteration(std::int64_t makespan_ms, std::int64_t bound_ms,
                                 std::int64_t pipeline_ms, std::int64_t transfer_ms, double mfu,
                                 std::vector<Bytes> peaks) {
  IterationResult result;
  result.makespan = ms(makespan_ms);
  result.iteration = ms(makespan_ms + 10);
  result.lower_bound = ms(bound_ms);
  result.idle.pipeline = ms(pipeline_ms);
  result.idle.transfer = ms(transfer_ms);
  result.busy = ms(makespan_ms) * static_cast<std::int64_t>(peaks.size()) - result.idle.total();
  result.bubble_ratio = static_cast<double>(result.idle.total().count()) /
                        static_cast<double>((result.idle.total() + result.busy).count());
  result.bubble_overhead =
      static_cast<double>(result.idle.total().count()) / static_cast<double>(result.busy.count());
  result.mfu = mfu;
  result.peak_memory = std::move(peaks);
  result.fits = true;
  return result;
}

/// Two ranks, two iterations of very different length, three schedules: "slow" (the first), "fast",
/// and "huge", the fastest, which does not fit on the second iteration.
inline Comparison small_comparison() {
  const Bytes gib{kGib};
  Comparison comparison;
  comparison.title = "test model on 2 GPUs";
  comparison.inputs = {{"model", "test"}, {"seed", "7"}};
  comparison.loads = {{"images per microbatch", {3.0, 9.5}}};
  comparison.requested_iterations = 2;
  comparison.schedules.resize(3);
  ScheduleResult& slow = comparison.schedules[0];
  slow.name = "slow";
  slow.recompute = "full";
  slow.iterations = {iteration(100, 80, 40, 10, 0.5, {3 * gib, gib}),
                     iteration(300, 240, 100, 0, 0.3, {2 * gib, 4 * gib})};
  ScheduleResult& fast = comparison.schedules[1];
  fast.name = "fast";
  fast.recompute = "keep";
  fast.notes = {{"K llm", "2: 24.1 ms over 11.0 ms"}};
  fast.iterations = {iteration(90, 85, 20, 0, 0.6, {5 * gib, gib}),
                     iteration(230, 200, 40, 0, 0.4, {2 * gib, 6 * gib})};
  ScheduleResult& huge = comparison.schedules[2];
  huge.name = "huge";
  huge.recompute = "keep";
  huge.iterations = {iteration(80, 75, 10, 0, 0.7, {9 * gib, gib}),
                     iteration(200, 190, 20, 0, 0.5, {2 * gib, 7 * gib})};
  huge.iterations[1].fits = false;
  for (ScheduleResult& schedule : comparison.schedules) {
    schedule.sample = GPipe(2, 3).run();
  }
  return comparison;
}

/// What an attacker, or an unlucky user, might call things.
inline const std::string kHostile = "<script>alert(\"1\")</script>&'|`\n\x01\xFF../../x";

inline Comparison hostile_comparison() {
  Comparison comparison = small_comparison();
  comparison.title = kHostile;
  comparison.inputs.push_back({kHostile, kHostile});
  comparison.loads[0].name = kHostile;
  comparison.remarks = {kHostile};
  comparison.warnings = {kHostile};
  for (ScheduleResult& schedule : comparison.schedules) {
    schedule.name = kHostile;
    schedule.recompute = kHostile;
    schedule.notes = {{kHostile, kHostile}};
    schedule.sample = GPipe(2, 3, kHostile).run();
  }
  return comparison;
}

}  // namespace dipsim::test
