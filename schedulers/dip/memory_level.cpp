// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory_level.hpp"

#include "sim/core/error.hpp"
#include "sim/graph/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

namespace dipsim::dip {

Choice uniform_choice(const TaskGraph& graph, const ReplicaGraph& replica, RecomputeMode mode) {
  Choice choice;
  choice.reserve(replica.pair_count());
  for (const PairId id : replica.pairs) {
    choice.push_back(static_cast<Index>(uniform_strategy(graph.allowed(graph.pair(id)), mode)));
  }
  return choice;
}

Choice most_saving_choice(const ReplicaGraph& replica) {
  Choice choice;
  choice.reserve(replica.pair_count());
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    const auto options = replica.options_of(pair);
    const auto best = std::ranges::min_element(options, {}, [](const PairOption& option) {
      return std::tuple(option.held, option.time(), option.rebuilt);
    });
    choice.push_back(static_cast<Index>(best - options.begin()));
  }
  return choice;
}

void set_durations(const ReplicaGraph& replica, std::span<const Index> choice,
                   std::span<Nanoseconds> durations) {
  const std::size_t pairs = replica.pair_count();
  for (Index pair = 0; pair < pairs; ++pair) {
    durations[pair] = replica.options[replica.first_option[pair] + choice[pair]].forward;
  }
  for (std::size_t pass = pairs; pass < replica.passes.size(); ++pass) {
    const Index pair = replica.passes[pass].pair;
    durations[pass] = replica.options[replica.first_option[pair] + choice[pair]].backward;
  }
}

namespace {

/// Bytes that a pair takes only while one of its passes runs.
ByteCount working_bytes(const ReplicaGraph& replica, Index pair, const PairOption& option) {
  const Index backward = replica.backward[pair];
  if (backward == ReplicaGraph::kNone) {
    // Nothing waits for what it holds: it dies with the forward.
    return replica.transient[pair] + option.held;
  }
  return std::max(replica.transient[pair], replica.transient[backward] + option.rebuilt);
}

}  // namespace

MemoryLevel memory_level(const ReplicaGraph& replica, std::span<const Index> choice) {
  const std::size_t ranks = replica.ranks.size();
  MemoryLevel level{.held = {}, .room = replica.room, .largest = std::vector<ByteCount>(ranks, 0)};
  level.held.reserve(replica.pair_count());
  std::vector<ByteCount> working(ranks, 0);
  std::vector<ByteCount> of_component(ranks * replica.components, 0);
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    const PairOption& option = replica.options_of(pair)[choice[pair]];
    const Index rank = replica.passes[pair].rank;
    const bool stays = replica.backward[pair] != ReplicaGraph::kNone;
    level.held.push_back(stays ? option.held : 0);
    working[rank] = std::max(working[rank], working_bytes(replica, pair, option));
    of_component[replica.component[pair] * ranks + rank] += level.held.back();
  }
  for (std::size_t i = 0; i < of_component.size(); ++i) {
    level.largest[i % ranks] = std::max(level.largest[i % ranks], of_component[i]);
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    level.room[r] -= working[r];
  }
  return level;
}

bool fits(const MemoryLevel& level) {
  return std::ranges::equal(level.largest, level.room, std::less_equal{});
}

void require_fit(const TaskGraph& graph, const ReplicaGraph& replica, const MemoryLevel& level) {
  for (std::size_t r = 0; r < replica.ranks.size(); ++r) {
    if (level.largest[r] <= level.room[r]) {
      continue;
    }
    const RankId id = replica.ranks[r];
    const Bytes limit = graph.rank(id).memory_limit;
    const Bytes working{replica.room[r] - level.room[r]};
    fail_infeasible(
        fmt::format("rank {}", id.value),
        fmt::format("not even one microbatch fits at the most saving strategies: {:.3f} GiB of "
                    "weights, gradients, optimizer state and buffers + {:.3f} GiB that the "
                    "largest microbatch holds + {:.3f} GiB while a pass runs; the limit is {:.3f} "
                    "GiB, {} bytes too little",
                    to_gib(limit - Bytes{replica.room[r]}), to_gib(Bytes{level.largest[r]}),
                    to_gib(working), to_gib(limit), level.largest[r] - level.room[r]));
  }
}

}  // namespace dipsim::dip
