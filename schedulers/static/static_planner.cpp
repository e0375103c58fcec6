// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/static_planner.hpp"

#include "schedulers/partition.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace dipsim {

namespace {

void check_chunks(const StaticSchedule& schedule, int chunks) {
  if (chunks >= schedule.min_chunks && chunks <= schedule.max_chunks) {
    return;
  }
  const std::string allowed =
      schedule.min_chunks == schedule.max_chunks
          ? fmt::format("{}", schedule.min_chunks)
          : fmt::format("{} to {}", schedule.min_chunks, schedule.max_chunks);
  fail_input(
      "chunks per rank",
      fmt::format("{} with schedule {}; allowed: {}; nearest legal: {}", chunks, schedule.name,
                  allowed, std::clamp(chunks, schedule.min_chunks, schedule.max_chunks)));
}

/// Index into a table of `columns` columns.
std::size_t entry(int line, int columns, int column) {
  return static_cast<std::size_t>(line) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

/// One replica of a task graph, addressed by (stage, microbatch).
struct Replica {
  PipelineShape shape{.ranks = 0, .microbatches = 0, .chunks = 0};
  std::vector<PairId> pairs;  ///< row stage × microbatches + microbatch
  /// Stages on each rank, in flow order: row rank × chunks + chunk.
  std::vector<int> stage_of;

  [[nodiscard]] PairId pair(int rank, const Step& step) const {
    const int stage = stage_of[entry(rank, shape.chunks, step.chunk)];
    return pairs[entry(stage, shape.microbatches, step.microbatch)];
  }
};

/// Splits a task graph into its replicas. Linear in the size of the graph.
class ReplicaFinder {
 public:
  ReplicaFinder(const TaskGraph& graph, const StaticSchedule& schedule)
      : graph_(graph), schedule_(schedule) {}

  std::vector<Replica> find() {
    count();
    for (Replica& replica : replicas_) {
      finish_shape(replica);
    }
    index_pairs();
    return std::move(replicas_);
  }

 private:
  Replica& replica(int number) { return replicas_[static_cast<std::size_t>(number)]; }

  void count() {
    for (const Rank& rank : graph_.placement.ranks) {
      const auto needed = static_cast<std::size_t>(rank.replica) + 1;
      if (replicas_.size() < needed) {
        replicas_.resize(needed);
        stages_.resize(needed, 0);
      }
      ++replica(rank.replica).shape.ranks;
    }
    for (const Chunk& chunk : graph_.placement.chunks) {
      const int number = graph_.rank(chunk.rank).replica;
      stage_of_chunk_.push_back(stages_[static_cast<std::size_t>(number)]++);
    }
    for (const Work& work : graph_.works) {
      microbatch_of_work_.push_back(replica(work.replica).shape.microbatches++);
    }
  }

  void finish_shape(Replica& replica) const {
    const int stages = stages_[static_cast<std::size_t>(&replica - replicas_.data())];
    PipelineShape& shape = replica.shape;
    require(shape.ranks > 0 && stages % shape.ranks == 0);
    shape.chunks = stages / shape.ranks;
    check_chunks(schedule_, shape.chunks);
    if (schedule_.check != nullptr) {
      schedule_.check(shape);
    }
    std::vector<int> used(static_cast<std::size_t>(shape.ranks), 0);
    replica.stage_of.resize(static_cast<std::size_t>(stages));
    for (int stage = 0; stage < stages; ++stage) {
      const int rank = schedule_.rank_of(shape, stage);
      const int chunk = used[static_cast<std::size_t>(rank)]++;
      replica.stage_of[entry(rank, shape.chunks, chunk)] = stage;
    }
    replica.pairs.resize(static_cast<std::size_t>(stages) *
                         static_cast<std::size_t>(shape.microbatches));
  }

  void index_pairs() {
    for (std::size_t i = 0; i < graph_.pairs.size(); ++i) {
      const Task& forward = graph_.task(graph_.pairs[i].f);
      const Rank& rank = graph_.rank(forward.rank);
      Replica& owner = replica(rank.replica);
      const int stage = stage_of_chunk_[forward.chunk.row()];
      require(schedule_.rank_of(owner.shape, stage) == rank.position);
      const int microbatch = microbatch_of_work_[forward.work.row()];
      owner.pairs[entry(stage, owner.shape.microbatches, microbatch)] = PairId{i};
    }
    for (const Replica& replica : replicas_) {
      require(std::ranges::all_of(replica.pairs, &PairId::valid));
    }
  }

  void require(bool holds) const {
    if (!holds) {
      fail_input("task graph", fmt::format("it was not placed by schedule {}: that has every "
                                           "microbatch on {} stages per rank, in its own order",
                                           schedule_.name, schedule_.default_chunks));
    }
  }

  const TaskGraph& graph_;
  const StaticSchedule& schedule_;
  std::vector<Replica> replicas_;
  std::vector<int> stages_;              ///< per replica
  std::vector<int> stage_of_chunk_;      ///< inside its replica
  std::vector<int> microbatch_of_work_;  ///< inside its replica
};

TaskId pass_of(const Pair& pair, Op op) {
  switch (op) {
    case Op::I:
      return pair.i;
    case Op::W:
      return pair.w;
    case Op::B:
      return pair.b;
    default:
      return pair.f;
  }
}

class StaticPlanner final : public Planner {
 public:
  StaticPlanner(const StaticSchedule& schedule, const PlannerOptions& options)
      : schedule_(schedule),
        options_(options),
        chunks_(options.chunks_per_rank == 0 ? schedule.default_chunks : options.chunks_per_rank) {
    check_chunks(schedule_, chunks_);
  }

  [[nodiscard]] Placement place(const Lowering& lowering,
                                const Batch& representative) const override {
    const Problem& problem = lowering.problem();
    const PipelineShape shape{.ranks = problem.depth(), .microbatches = 0, .chunks = chunks_};
    const int stages = shape.ranks * chunks_;
    const std::vector<int> counts = layers_per_stage(lowering, representative, stages);
    const auto layers = stage_layers(problem, counts, stages);

    Placement placement;
    placement.cells = problem.cells;
    placement.ranks = problem.ranks;
    placement.notes = {
        {.name = "chunks per rank", .text = fmt::format("{}", chunks_)},
        {.name = "partition by", .text = std::string(name_of(options_.partition))},
        {.name = "layers per stage", .text = fmt::format("{}", fmt::join(counts, " "))}};
    for (int replica = 0; replica < problem.replicas; ++replica) {
      for (int stage = 0; stage < stages; ++stage) {
        const auto& ranges = layers[static_cast<std::size_t>(stage)];
        const ChunkMemory memory = lowering.memory(ranges);
        placement.chunks.push_back(
            {.layers = ranges,
             .rank = RankId{replica * shape.ranks + schedule_.rank_of(shape, stage)},
             .weight_set = stage,
             .weights = memory.weights,
             .gradients = memory.gradients,
             .optimizer = memory.optimizer});
      }
    }
    return placement;
  }

  [[nodiscard]] Draft slice(const Placement& placement, const Batch& batch,
                            const Lowering& /*lowering*/) const override {
    Draft draft{.placement = placement, .works = {}, .split_backward = schedule_.split_backward};
    draft.works.reserve(batch.microbatches());
    for (std::size_t m = 0; m < batch.microbatches(); ++m) {
      draft.works.push_back(
          {.replica = batch.replica[m], .portions = {{.microbatch = MicrobatchId{m}}}});
    }
    return draft;
  }

  [[nodiscard]] Schedule order(const TaskGraph& graph) const override {
    const std::vector<Replica> replicas = ReplicaFinder(graph, schedule_).find();
    Schedule schedule;
    schedule.chosen = uniform_strategies(graph, options_.recompute);
    schedule.compute.reserve(graph.placement.cells.size(),
                             (schedule_.split_backward ? 3U : 2U) * graph.pairs.size());
    for (const RankId id : owners(graph)) {
      schedule.compute.add_row();
      if (!id.valid()) {
        continue;
      }
      const Rank& rank = graph.rank(id);
      const Replica& replica = replicas[static_cast<std::size_t>(rank.replica)];
      for (const Step& step : schedule_.steps(replica.shape, rank.position)) {
        const TaskId pass = pass_of(graph.pair(replica.pair(rank.position, step)), step.op);
        if (pass.valid()) {  // frozen layers have no backward
          schedule.compute.push_back({.task = pass, .together = {}});
        }
      }
    }
    return schedule;
  }

 private:
  [[nodiscard]] std::vector<int> layers_per_stage(const Lowering& lowering, const Batch& batch,
                                                  int stages) const {
    switch (options_.partition) {
      case PartitionRule::Parameters:
        return balanced_partition(layer_parameters(lowering.problem()), stages);
      case PartitionRule::PassTime:
        return balanced_partition(layer_times(lowering, batch, options_.recompute), stages);
      case PartitionRule::Given:
        break;
    }
    return options_.given_layers;
  }

  /// The rank that computes on each cell.
  static std::vector<RankId> owners(const TaskGraph& graph) {
    std::vector<RankId> owner(graph.placement.cells.size());
    for (std::size_t r = 0; r < graph.placement.ranks.size(); ++r) {
      for (const CellId cell : graph.placement.ranks[r].cells) {
        if (owner[cell.row()].valid()) {
          fail_input(fmt::format("cell {}", cell.value),
                     fmt::format("ranks {} and {} share it; a fixed order needs cells of its own "
                                 "for every rank",
                                 owner[cell.row()].value, r));
        }
        owner[cell.row()] = RankId{r};
      }
    }
    return owner;
  }

  const StaticSchedule& schedule_;
  PlannerOptions options_;
  int chunks_;
};

}  // namespace

int round_robin(const PipelineShape& shape, int stage) { return stage % shape.ranks; }

std::unique_ptr<Planner> make_static_planner(const StaticSchedule& schedule,
                                             const PlannerOptions& options) {
  return std::make_unique<StaticPlanner>(schedule, options);
}

}  // namespace dipsim
