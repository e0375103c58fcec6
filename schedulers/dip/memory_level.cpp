// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory_level.hpp"

#include "schedulers/dip/held.hpp"
#include "schedulers/dip/order.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

namespace dipsim::dip {

Choice uniform_choice(const ReplicaGraph& replica, RecomputeMode mode) {
  Choice choice;
  choice.reserve(replica.pair_count());
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    choice.push_back(static_cast<Index>(uniform_row(replica.options_of(pair), mode)));
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
  const auto chosen = [&](std::size_t pass) -> const PairOption& {
    const Index pair = replica.passes[pass].pair;
    return replica.options[replica.first_option[pair] + choice[pair]];
  };
  const std::size_t pairs = replica.pair_count();
  for (std::size_t pass = 0; pass < pairs; ++pass) {
    durations[pass] = chosen(pass).forward;
  }
  for (std::size_t pass = pairs; pass < replica.first_weight; ++pass) {
    durations[pass] = chosen(pass).backward;
  }
  for (std::size_t pass = replica.first_weight; pass < replica.passes.size(); ++pass) {
    durations[pass] = chosen(pass).weight;
  }
}

namespace {

/// Most that a pass of the pair needs beyond what pairs hold from F to their backwards; behind I a
/// W may have to follow at once, and then what it reads takes the place of what the pair held.
ByteCount working_bytes(const ReplicaGraph& replica, Index pair, const PairOption& option) {
  const Index backward = replica.backward[pair];
  if (backward == ReplicaGraph::kNone) {
    // Nothing waits for what it holds: it dies with the forward.
    return needed_bytes(replica, pair, option);
  }
  ByteCount bytes = std::max(replica.transient[pair], needed_bytes(replica, backward, option));
  if (const Index weight = replica.weight[pair]; weight != ReplicaGraph::kNone) {
    bytes = std::max(bytes, needed_bytes(replica, weight, option) +
                                std::max<ByteCount>(0, option.kept - option.held));
  }
  return bytes;
}

/// Per rank the peak when components run one after the other, each in natural_passes().
std::vector<ByteCount> peak_alone(const ReplicaGraph& replica, std::span<const Index> choice) {
  const std::size_t ranks = replica.ranks.size();
  std::vector<ByteCount> held(ranks * replica.components, 0);
  std::vector<ByteCount> peak(ranks, 0);
  for (const Index pass : natural_passes(replica)) {
    const Index pair = replica.passes[pass].pair;
    const Index rank = replica.passes[pass].rank;
    const PairOption& option = replica.options_of(pair)[choice[pair]];
    ByteCount& of_component = held[replica.component[pair] * ranks + rank];
    peak[rank] = std::max(peak[rank], of_component + needed_bytes(replica, pass, option));
    of_component += held_change(replica, pass, option);
  }
  return peak;
}

}  // namespace

MemoryLevel memory_level(const ReplicaGraph& replica, std::span<const Index> choice) {
  const std::size_t ranks = replica.ranks.size();
  MemoryLevel level{.pairs = {},
                    .room = replica.room,
                    .reserve = std::vector<ByteCount>(ranks, 0),
                    .of_component = std::vector<ByteCount>(ranks * replica.components, 0),
                    .working = std::vector<ByteCount>(ranks * replica.components, 0),
                    .most_working = std::vector<ByteCount>(ranks, 0),
                    .alone = peak_alone(replica, choice)};
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    const PairOption& option = replica.options_of(pair)[choice[pair]];
    const Index rank = replica.passes[pair].rank;
    const std::size_t row = replica.component[pair] * ranks + rank;
    const bool stays = replica.backward[pair] != ReplicaGraph::kNone;
    const PairLevel& of_pair = level.pairs.emplace_back(
        PairLevel{.held = stays ? option.held : 0,
                  .forward = needed_bytes(replica, pair, option),
                  .rebuilt = stays ? option.rebuilt : 0,
                  .kept = replica.weight[pair] != ReplicaGraph::kNone ? option.kept : 0});
    level.reserve[rank] = std::max(level.reserve[rank], of_pair.rebuilt);
    level.of_component[row] += of_pair.held;
    level.working[row] = std::max(level.working[row], working_bytes(replica, pair, option));
    level.most_working[rank] = std::max(level.most_working[rank], level.working[row]);
  }
  return level;
}

bool fits(const MemoryLevel& level) {
  return std::ranges::equal(level.alone, level.room, std::less_equal{});
}

void require_fit(const TaskGraph& graph, const ReplicaGraph& replica, const MemoryLevel& level) {
  for (std::size_t r = 0; r < replica.ranks.size(); ++r) {
    if (level.alone[r] <= level.room[r]) {
      continue;
    }
    const RankId id = replica.ranks[r];
    const Bytes limit = graph.rank(id).memory_limit;
    fail_infeasible(
        fmt::format("rank {}", id.value),
        fmt::format("not even one microbatch fits at the most saving strategies: {:.3f} GiB of "
                    "weights, gradients, optimizer state and buffers + {:.3f} GiB that the "
                    "largest microbatch needs; the limit is {:.3f} GiB, {} bytes too little",
                    to_gib(limit - Bytes{replica.room[r]}), to_gib(Bytes{level.alone[r]}),
                    to_gib(limit), level.alone[r] - level.room[r]));
  }
}

}  // namespace dipsim::dip
