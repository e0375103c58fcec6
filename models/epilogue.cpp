// SPDX-License-Identifier: Apache-2.0
#include "models/epilogue.hpp"

#include "models/flows.hpp"

#include <algorithm>
#include <cmath>

namespace dipsim {

namespace {

constexpr std::int32_t kNone = -1;

std::int32_t size_of(const auto& container) { return static_cast<std::int32_t>(container.size()); }

/// The bytes that a collective still moves in the time that is left of it.
Bytes part_of(Bytes bytes, Duration left, Duration whole) {
  return left == whole ? bytes
                       : Bytes{std::llround(static_cast<double>(bytes.count) *
                                            (static_cast<double>(left.count()) /
                                             static_cast<double>(whole.count())))};
}

}  // namespace

Duration exposed_reduction(Duration whole, int buckets, Duration beside) {
  const Duration last = (whole + Duration{buckets - 1}) / buckets;
  const Duration made = std::min(beside, whole);  // more would hide no more
  return std::max(last, whole - made * (buckets - 1) / buckets);
}

Epilogue::Epilogue(const Placement& placement, const CostSource& costs)
    : reduction_of_chunk_(placement.chunks.size(), kNone),
      optimizer_of_rank_(placement.ranks.size(), kNone) {
  Numbering sets;
  std::vector<std::int32_t> reduction_of_set;
  std::vector<std::vector<Chunk>> chunks(placement.ranks.size());
  for (std::size_t c = 0; c < placement.chunks.size(); ++c) {
    const Chunk& chunk = placement.chunks[c];
    chunks[chunk.rank.row()].push_back(chunk);
    const std::int32_t set = sets.of({chunk.weight_set});
    if (set == size_of(reduction_of_set)) {
      const TransferCost cost = costs.gradient_reduction(chunk);
      const Duration time = cost.occupied + cost.latency;
      reduction_of_set.push_back(time.count() > 0 ? size_of(reductions_) : kNone);
      if (time.count() > 0) {
        reductions_.push_back({.chunk = ChunkId{c},
                               .time = time,
                               .bytes = cost.bytes,
                               .buckets = costs.gradient_buckets(chunk),
                               .group = {}});
      }
    }
    reduction_of_chunk_[c] = reduction_of_set[static_cast<std::size_t>(set)];
    if (reduction_of_chunk_[c] != kNone) {
      reductions_[static_cast<std::size_t>(reduction_of_chunk_[c])].group.push_back(chunk.rank);
    }
  }
  for (Reduction& reduction : reductions_) {
    std::ranges::sort(reduction.group);
    const auto repeated = std::ranges::unique(reduction.group);
    reduction.group.erase(repeated.begin(), repeated.end());
  }
  for (std::size_t r = 0; r < chunks.size(); ++r) {
    const Duration time = costs.optimizer_step(chunks[r]);
    if (time.count() > 0) {
      optimizer_of_rank_[r] = size_of(optimizers_);
      optimizers_.push_back({RankId{r}, time, costs.optimizer_transient(chunks[r])});
    }
  }
}

std::size_t Epilogue::edges() const {
  std::size_t edges = 0;
  for (const Reduction& reduction : reductions_) {
    edges += static_cast<std::size_t>(std::ranges::count_if(
        reduction.group, [&](RankId rank) { return optimizer_of_rank_[rank.row()] != kNone; }));
  }
  return edges;
}

std::int32_t Epilogue::follower(ChunkId chunk, RankId rank) const {
  const std::int32_t reduction = reduction_of_chunk_[chunk.row()];
  if (reduction != kNone) {
    return reduction;
  }
  const std::int32_t optimizer = optimizer_of_rank_[rank.row()];
  return optimizer == kNone ? kNone : size_of(reductions_) + optimizer;
}

void Epilogue::append_to(TaskGraph& graph, std::span<const Duration> shortest) const {
  const std::int32_t first = size_of(graph.tasks);
  append_reductions(graph, shortest);
  for (const Step& step : optimizers_) {
    graph.tasks.push_back({.op = Op::Optimizer,
                           .lane = Lane::Compute,
                           .rank = step.rank,
                           .fixed = step.time,
                           .transient = step.transient});
  }
  for (std::int32_t r = 0; r < size_of(reductions_); ++r) {
    for (const RankId rank : reductions_[static_cast<std::size_t>(r)].group) {
      const std::int32_t optimizer = optimizer_of_rank_[rank.row()];
      if (optimizer != kNone) {
        graph.edges.push_back(
            {TaskId{first + r}, TaskId{first + size_of(reductions_) + optimizer}});
      }
    }
  }
}

Duration Epilogue::beside(std::int32_t reduction, std::span<const Duration> shortest) const {
  Duration least = Duration::max();
  for (std::size_t c = 0; c < shortest.size(); ++c) {
    if (reduction_of_chunk_[c] == reduction && shortest[c] != Duration::max()) {
      least = std::min(least, shortest[c]);
    }
  }
  return least == Duration::max() ? Duration{0} : least;
}

void Epilogue::append_reductions(TaskGraph& graph, std::span<const Duration> shortest) const {
  const std::int32_t first_group = size_of(graph.placement.groups);
  Numbering groups;
  for (std::int32_t r = 0; r < size_of(reductions_); ++r) {
    const Reduction& reduction = reductions_[static_cast<std::size_t>(r)];
    const Duration left =
        reduction.buckets > 1
            ? exposed_reduction(reduction.time, reduction.buckets, beside(r, shortest))
            : reduction.time;
    std::vector<std::int64_t> key;
    key.reserve(reduction.group.size());
    for (const RankId rank : reduction.group) {
      key.push_back(rank.value);
    }
    const GroupId group{first_group + groups.of(key)};
    if (group.value == size_of(graph.placement.groups)) {
      graph.placement.groups.add_row(reduction.group);
    }
    graph.tasks.push_back({.op = Op::Collective,
                           .lane = Lane::Gradient,
                           .rank = reduction.group.front(),
                           .chunk = reduction.chunk,
                           .group = group,
                           .fixed = left,
                           .bytes = part_of(reduction.bytes, left, reduction.time)});
  }
}

}  // namespace dipsim
