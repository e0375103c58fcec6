// SPDX-License-Identifier: Apache-2.0
// Random pipelines with random orders for the search units of the DIP planners, and the way from
// their sequences to the independent evaluators.
#pragma once

#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/memory.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "sim/graph/schedule.hpp"
#include "tests/schedulers/dip_graphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dipsim::test {

/// What a random pipeline may contain.
struct PipelineShape {
  int ranks = 4;         ///< 2 to this many
  int microbatches = 6;  ///< 1 to this many
  bool queueing = true;  ///< transfers occupy their links, and some feed two passes
  bool split = false;    ///< about half of the backwards as I and W
  bool all_split = false;
  bool twins = false;  ///< every strategy of a split pair has one that does W inside I
  bool zero_times = false;
  std::int64_t memory_limit = std::int64_t{1} << 60;
};

inline std::vector<Strategy> random_strategies(RandomStream& random, const PipelineShape& shape,
                                               bool split) {
  const std::int64_t least = shape.zero_times ? 0 : 1;
  const std::int64_t f = random.integer(least, 100);
  const std::int64_t i = random.integer(least, 120);
  const std::int64_t w = random.integer(1, 100);
  const std::int64_t held = random.integer(1, 40);
  const auto kept = [&] { return random.integer(0, 60); };
  std::vector<Strategy> strategies = {
      split_strategy(RecomputeMode::Keep, f, i, w, 4 * held, kept())};
  if (random.uniform() < 0.7) {
    strategies.push_back(
        split_strategy(RecomputeMode::Selective, f, i + f / 4, w, 2 * held, kept(), held));
  }
  if (random.uniform() < 0.7) {
    strategies.push_back(split_strategy(RecomputeMode::Full, f, i + f, w, held, kept(), 3 * held));
  }
  return split && shape.twins ? with_twins(strategies) : strategies;
}

/// A random multimodal pipeline: two modules in 1 to 3 segments, 0 to 3 encoder slices per
/// microbatch, some without a backward; every pair with times and bytes of its own, every transfer
/// with times of its own, transient memory in every pass but W.
inline TaskGraph random_graph(RandomStream& random, const PipelineShape& shape) {
  PipelineSpec spec;
  spec.ranks = static_cast<int>(random.integer(2, shape.ranks));
  spec.segments = {static_cast<int>(random.integer(1, 3)), static_cast<int>(random.integer(1, 2))};
  spec.memory_limit = Bytes{shape.memory_limit};
  const auto add = [&](int microbatch, int module) {
    spec.works.push_back(work(microbatch, module, {keep(1, 1, 1)}));
    spec.works.back().split = shape.all_split || (shape.split && random.uniform() < 0.5);
  };
  const auto microbatches = static_cast<int>(random.integer(1, shape.microbatches));
  for (int m = 0; m < microbatches; ++m) {
    for (std::int64_t s = random.integer(0, 3); s > 0; --s) {
      add(m, 0);
      spec.works.back().has_backward = random.uniform() < 0.9;
    }
    add(m, 1);
  }
  TaskGraph graph = pipeline(spec);
  graph.strategies.clear();
  for (Pair& pair : graph.pairs) {
    const auto strategies = random_strategies(random, shape, pair.w.valid());
    pair.first_strategy = StrategyId(graph.strategies.size());
    pair.strategy_count = static_cast<std::int32_t>(strategies.size());
    graph.strategies.insert(graph.strategies.end(), strategies.begin(), strategies.end());
  }
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    Task& task = graph.tasks[t];
    if (task.op == Op::Transfer) {
      task.fixed = Duration{shape.queueing ? random.integer(0, 60) : 0};
      task.latency = Duration{random.integer(0, 40)};
    } else if (task.op != Op::W) {
      task.transient = Bytes{random.integer(0, 10)};
    }
  }
  if (shape.queueing) {  // some activations are also needed by a later work on the same rank
    const std::size_t edges = graph.edges.size();
    for (std::size_t e = 0; e < edges; ++e) {
      const Edge edge = graph.edges[e];
      const Task& to = graph.task(edge.to);
      if (graph.task(edge.from).op != Op::Transfer || to.op != Op::F || random.uniform() < 0.7) {
        continue;
      }
      for (const Pair& pair : graph.pairs) {
        const Task& other = graph.task(pair.f);
        if (other.rank == to.rank && other.chunk == to.chunk && to.work < other.work) {
          graph.edges.push_back({edge.from, pair.f});
          break;
        }
      }
    }
  }
  return graph;
}

/// A graph with one replica, random strategies chosen, and a random order that follows precedence.
struct OrderCase {
  TaskGraph graph;
  dip::ReplicaGraph replica;
  dip::Choice choice;
  std::vector<dip::Index> sequence;
};

/// Any order of the passes that follows precedence, all of them possible.
inline std::vector<dip::Index> random_sequence(const dip::ReplicaGraph& replica,
                                               RandomStream& random) {
  std::vector<dip::Index> missing(replica.passes.size());
  std::vector<dip::Index> ready;
  for (dip::Index pass = 0; pass < replica.passes.size(); ++pass) {
    missing[pass] = replica.passes[pass].predecessors;
    if (missing[pass] == 0) {
      ready.push_back(pass);
    }
  }
  std::vector<dip::Index> sequence;
  while (!ready.empty()) {
    std::swap(ready[static_cast<std::size_t>(
                  random.integer(0, static_cast<std::int64_t>(ready.size()) - 1))],
              ready.back());
    const dip::Pass& pass = replica.passes[ready.back()];
    sequence.push_back(ready.back());
    ready.pop_back();
    for (dip::Index h = pass.first_hop; h < pass.last_hop; ++h) {
      if (--missing[replica.hops[h].to] == 0) {
        ready.push_back(replica.hops[h].to);
      }
    }
  }
  return sequence;
}

inline dip::Choice random_choice(const dip::ReplicaGraph& replica, RandomStream& random) {
  dip::Choice choice;
  for (dip::Index pair = 0; pair < replica.pair_count(); ++pair) {
    choice.push_back(
        static_cast<dip::Index>(random.integer(0, std::int64_t{replica.option_count[pair]} - 1)));
  }
  return choice;
}

inline OrderCase random_order_case(RandomStream& random, const PipelineShape& shape) {
  OrderCase made{.graph = random_graph(random, shape), .replica = {}, .choice = {}, .sequence = {}};
  made.replica = dip::replica_graphs(made.graph).front();
  made.choice = random_choice(made.replica, random);
  made.sequence = random_sequence(made.replica, random);
  return made;
}

/// Per rank the passes in the order of the sequence.
inline std::vector<std::vector<dip::Index>> rank_orders(const dip::ReplicaGraph& replica,
                                                        std::span<const dip::Index> sequence) {
  std::vector<std::vector<dip::Index>> orders(replica.ranks.size());
  for (const dip::Index pass : sequence) {
    orders[replica.passes[pass].rank].push_back(pass);
  }
  return orders;
}

/// Orders of a graph with one replica as a schedule.
inline Schedule schedule_of(const TaskGraph& graph, const dip::ReplicaGraph& replica,
                            const std::vector<std::vector<dip::Index>>& orders,
                            const dip::Choice& choice) {
  Schedule schedule;
  for (const std::vector<dip::Index>& order : orders) {
    schedule.compute.add_row();
    for (const dip::Index pass : order) {
      schedule.compute.push_back({.task = replica.tasks[pass], .together = {}});
    }
  }
  schedule.chosen.resize(graph.pairs.size());
  for (std::size_t pair = 0; pair < replica.pair_count(); ++pair) {
    const PairId id = replica.pairs[pair];
    schedule.chosen[id.row()] = StrategyId(graph.pair(id).first_strategy.row() + choice[pair]);
  }
  return schedule;
}

inline Schedule schedule_of(const TaskGraph& graph, const dip::ReplicaGraph& replica,
                            std::span<const dip::Index> sequence, const dip::Choice& choice) {
  return schedule_of(graph, replica, rank_orders(replica, sequence), choice);
}

/// What the order evaluator says; nothing where the schedule deadlocks.
inline std::optional<Timeline> timeline_of(const TaskGraph& graph, const Schedule& schedule) {
  try {
    return OrderEvaluator(graph).evaluate(schedule);
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::Input);
    return std::nullopt;
  }
}

/// Largest peak of all ranks.
inline Bytes peak_of(const Timeline& timeline) {
  return std::ranges::max_element(timeline.memory, {}, &MemoryCurve::peak)->peak;
}

/// All passes once, each after everything that it waits for.
inline bool follows_precedence(const dip::ReplicaGraph& replica,
                               std::span<const dip::Index> sequence) {
  std::vector<std::size_t> place(replica.passes.size(), replica.passes.size());
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (place[sequence[i]] != replica.passes.size()) {
      return false;
    }
    place[sequence[i]] = i;
  }
  for (const dip::Index pass : sequence) {
    const dip::Pass& from = replica.passes[pass];
    for (dip::Index h = from.first_hop; h < from.last_hop; ++h) {
      if (place[pass] >= place[replica.hops[h].to]) {
        return false;
      }
    }
  }
  return sequence.size() == replica.passes.size();
}

/// The least limit, equal on all ranks, at which one microbatch after the other fits.
inline dip::ByteCount tightest_limit(const TaskGraph& graph) {
  dip::ReplicaGraph replica = dip::replica_graphs(graph).front();
  const dip::Choice saving = dip::most_saving_choice(replica);
  dip::ByteCount too_little = -1;
  dip::ByteCount enough = std::int64_t{1} << 40;
  while (enough - too_little > 1) {
    const dip::ByteCount limit = std::midpoint(too_little, enough);
    std::ranges::fill(replica.room, limit);
    (dip::fits(dip::memory_level(replica, saving)) ? enough : too_little) = limit;
  }
  return enough;
}

/// Whether every microbatch has room for all that it holds at once and what its passes need beside
/// it: then the interleaver must find an order.
inline bool fits_easily(const dip::MemoryLevel& level) {
  const std::size_t ranks = level.room.size();
  for (std::size_t i = 0; i < level.of_component.size(); ++i) {
    if (level.of_component[i] + level.working[i] > level.room[i % ranks]) {
      return false;
    }
  }
  return true;
}

inline void set_limit(TaskGraph& graph, dip::ByteCount limit) {
  for (Rank& rank : graph.placement.ranks) {
    rank.memory_limit = Bytes{limit};
  }
}

inline dip::GroupOrder random_groups(const dip::ReplicaGraph& replica, RandomStream& random) {
  dip::GroupOrder order = dip::natural_order(replica);
  random.shuffle(std::span(order.forward));
  random.shuffle(std::span(order.backward));
  return order;
}

inline bool is_permutation_of_groups(const dip::ReplicaGraph& replica,
                                     std::vector<dip::Index> order) {
  std::ranges::sort(order);
  std::vector<dip::Index> all(replica.groups.size());
  std::iota(all.begin(), all.end(), dip::Index{0});
  return order == all;
}

}  // namespace dipsim::test
