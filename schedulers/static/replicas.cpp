// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/replicas.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace dipsim {

namespace {

/// Index into a table of `columns` columns.
std::size_t entry(int line, int columns, int column) {
  return static_cast<std::size_t>(line) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

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
    for (std::size_t r = 0; r < graph_.placement.ranks.size(); ++r) {
      add_rank(RankId{r});
    }
    for (const Chunk& chunk : graph_.placement.chunks) {
      const int number = graph_.rank(chunk.rank).replica;
      stage_of_chunk_.push_back(stages_[static_cast<std::size_t>(number)]++);
    }
    for (const Work& work : graph_.works) {
      microbatch_of_work_.push_back(replica(work.replica).shape.microbatches++);
    }
  }

  void add_rank(RankId id) {
    const Rank& rank = graph_.rank(id);
    Replica& owner = replica(rank.replica);
    owner.ranks.resize(static_cast<std::size_t>(owner.shape.ranks));
    require(rank.position >= 0 && rank.position < owner.shape.ranks);
    owner.ranks[static_cast<std::size_t>(rank.position)] = id;
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

}  // namespace

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

int Replica::stage(int rank, int chunk) const { return stage_of[entry(rank, shape.chunks, chunk)]; }

PairId Replica::pair(int rank, const Step& step) const {
  return pairs[entry(stage(rank, step.chunk), shape.microbatches, step.microbatch)];
}

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

std::vector<Replica> find_replicas(const TaskGraph& graph, const StaticSchedule& schedule) {
  return ReplicaFinder(graph, schedule).find();
}

}  // namespace dipsim
