// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/held.hpp"
#include "schedulers/dip/pass_order.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/schedulers/dip_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace dipsim {

namespace {

using dip::Index;
using dip::Move;
using dip::Nanoseconds;
using dip::PassOrder;
using dip::ReplicaGraph;
using test::OrderCase;
using test::PipelineShape;

/// With transfers that queue, or without; with whole backwards only, or with both kinds.
PipelineShape shape_of(std::uint64_t seed) {
  return {.queueing = seed % 2 == 0, .split = seed % 4 >= 2, .zero_times = seed % 5 == 0};
}

Timeline timeline_of(const OrderCase& made, std::span<const Index> sequence) {
  return OrderEvaluator(made.graph)
      .evaluate(test::schedule_of(made.graph, made.replica, sequence, made.choice));
}

/// Any two passes of a rank; none where no rank has two.
std::optional<Move> random_move(const ReplicaGraph& replica,
                                const std::vector<std::vector<Index>>& orders,
                                RandomStream& random) {
  const auto& order = orders[static_cast<std::size_t>(
      random.integer(0, static_cast<std::int64_t>(replica.ranks.size()) - 1))];
  if (order.size() < 2) {
    return std::nullopt;
  }
  const auto last = static_cast<std::int64_t>(order.size()) - 1;
  const std::int64_t from = random.integer(0, last);
  // Near ones more often: far ones are mostly impossible.
  const std::int64_t reach = random.uniform() < 0.7 ? 3 : last;
  const std::int64_t to = std::clamp(from + random.integer(-reach, reach), std::int64_t{0}, last);
  if (from == to) {
    return std::nullopt;
  }
  return Move{.pass = order[static_cast<std::size_t>(from)],
              .target = order[static_cast<std::size_t>(to)],
              .later = from < to};
}

/// The order of the rank with the pass taken out and put directly behind or before the target.
std::vector<std::vector<Index>> moved(const ReplicaGraph& replica,
                                      std::vector<std::vector<Index>> orders, const Move& move) {
  std::vector<Index>& order = orders[replica.passes[move.pass].rank];
  std::erase(order, move.pass);
  const auto target = std::ranges::find(order, move.target);
  order.insert(move.later ? target + 1 : target, move.pass);
  return orders;
}

/// Everything that an order tells about its passes.
struct Snapshot {
  std::vector<Index> sequence;
  std::vector<Nanoseconds> heads;
  std::vector<Nanoseconds> tails;
  std::vector<Index> neighbours;
  Nanoseconds makespan = 0;
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

Snapshot snapshot_of(const PassOrder& order, std::size_t passes) {
  Snapshot all;
  all.sequence.assign(order.sequence().begin(), order.sequence().end());
  for (Index pass = 0; pass < passes; ++pass) {
    all.heads.push_back(order.head(pass));
    all.tails.push_back(order.tail(pass));
    all.neighbours.push_back(order.previous(pass));
    all.neighbours.push_back(order.next(pass));
  }
  all.makespan = order.makespan();
  return all;
}

/// Longest way from the end of each task to the end of the last pass, in the graph of the edges
/// and the rank orders: transfers count what they occupy and their latency, but no queue.
std::vector<Nanoseconds> tails_of(const OrderCase& made, std::span<const Index> sequence) {
  const TaskGraph& graph = made.graph;
  const Schedule schedule = test::schedule_of(graph, made.replica, sequence, made.choice);
  std::vector<std::vector<TaskId>> after(graph.tasks.size());
  for (const Edge& edge : graph.edges) {
    after[edge.from.row()].push_back(edge.to);
  }
  for (std::size_t cell = 0; cell < schedule.compute.size(); ++cell) {
    const auto row = schedule.compute[cell];
    for (std::size_t i = 1; i < row.size(); ++i) {
      after[row[i - 1].task.row()].push_back(row[i].task);
    }
  }
  std::vector<Nanoseconds> tails(graph.tasks.size(), 0);
  for (std::size_t round = 0, changed = 1; changed > 0 && round <= tails.size(); ++round) {
    changed = 0;
    for (std::size_t t = tails.size(); t-- > 0;) {
      for (const TaskId next : after[t]) {
        const Nanoseconds length = duration_of(graph, next, schedule.chosen).count() +
                                   graph.task(next).latency.count() + tails[next.row()];
        changed += length > tails[t] ? 1U : 0U;
        tails[t] = std::max(tails[t], length);
      }
    }
  }
  return tails;
}

/// Checks every figure of the order against the independent evaluator.
void check_times(const OrderCase& made, const PassOrder& order) {
  REQUIRE(test::follows_precedence(made.replica, order.sequence()));
  const Timeline timeline = timeline_of(made, order.sequence());
  const std::vector<Nanoseconds> tails = tails_of(made, order.sequence());
  CHECK(order.makespan() == timeline.makespan.count());
  for (Index pass = 0; pass < made.replica.passes.size(); ++pass) {
    const std::size_t task = made.replica.tasks[pass].row();
    const Span& span = timeline.spans[task];
    CHECK(order.head(pass) == (span.start - kStart).count());
    CHECK(order.duration(pass) == (span.end - span.start).count());
    CHECK(order.tail(pass) == tails[task]);
    CHECK(order.head(pass) + order.duration(pass) + order.tail(pass) <= order.makespan());
  }
  const auto orders = test::rank_orders(made.replica, order.sequence());
  for (const std::vector<Index>& of_rank : orders) {
    for (std::size_t i = 0; i < of_rank.size(); ++i) {
      CHECK(order.previous(of_rank[i]) == (i == 0 ? ReplicaGraph::kNone : of_rank[i - 1]));
      CHECK(order.next(of_rank[i]) ==
            (i + 1 == of_rank.size() ? ReplicaGraph::kNone : of_rank[i + 1]));
    }
  }
}

}  // namespace

TEST_CASE("dip pass order: it times any order as the order evaluator does") {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip pass order times");
    OrderCase made = test::random_order_case(random, shape_of(seed));
    PassOrder order(made.replica);
    for (int repeat = 0; repeat < 2; ++repeat) {  // the workspace carries nothing over
      order.assign(made.sequence, made.choice);
      CHECK(std::ranges::equal(order.sequence(), made.sequence));
      check_times(made, order);
      made.sequence = test::random_sequence(made.replica, random);
      made.choice = test::random_choice(made.replica, random);
    }
  }
}

TEST_CASE("dip pass order: a move changes one rank order, or is refused exactly on a deadlock") {
  std::size_t made_moves = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip pass order moves");
    const OrderCase made = test::random_order_case(random, shape_of(seed));
    PassOrder order(made.replica);
    order.assign(made.sequence, made.choice);
    for (int step = 0; step < 300; ++step) {
      CAPTURE(step);
      const auto before = test::rank_orders(made.replica, order.sequence());
      const auto move = random_move(made.replica, before, random);
      if (!move) {
        continue;
      }
      const auto after = moved(made.replica, before, *move);
      const auto timeline = test::timeline_of(
          made.graph, test::schedule_of(made.graph, made.replica, after, made.choice));
      const Snapshot old = snapshot_of(order, made.replica.passes.size());
      REQUIRE(order.apply(*move) == timeline.has_value());
      if (!timeline) {
        ++refused;
        REQUIRE(snapshot_of(order, made.replica.passes.size()) == old);
        continue;
      }
      ++made_moves;
      REQUIRE(test::follows_precedence(made.replica, order.sequence()));
      REQUIRE(test::rank_orders(made.replica, order.sequence()) == after);
      REQUIRE(order.makespan() == timeline->makespan.count());
    }
    check_times(made, order);
  }
  CHECK(made_moves > 2000);
  CHECK(refused > 500);
}

TEST_CASE("dip pass order: a move fits exactly where the memory curve of the rank does") {
  std::size_t fitting = 0;
  std::size_t too_large = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip pass order memory");
    PipelineShape shape = shape_of(seed);
    shape.zero_times = false;  // what lives for no time counts in one of the two only
    shape.split = seed % 3 > 0;
    OrderCase made = test::random_order_case(random, shape);
    for (Task& task : made.graph.tasks) {
      task.transient = Bytes{is_pass(task.op) ? random.integer(0, 30) : 0};
    }
    const Timeline timed = timeline_of(made, made.sequence);
    for (std::size_t r = 0; r < timed.memory.size(); ++r) {
      made.graph.placement.ranks[r].memory_limit =
          timed.memory[r].peak + Bytes{seed % 2 == 0 ? 0 : random.integer(0, 50)};
    }
    made.replica = dip::replica_graphs(made.graph).front();
    PassOrder order(made.replica);
    order.assign(made.sequence, made.choice);
    for (int step = 0; step < 150; ++step) {
      CAPTURE(step);
      const auto before = test::rank_orders(made.replica, order.sequence());
      const auto move = random_move(made.replica, before, random);
      if (!move) {
        continue;
      }
      const auto timeline = test::timeline_of(
          made.graph, test::schedule_of(made.graph, made.replica,
                                        moved(made.replica, before, *move), made.choice));
      if (!timeline) {
        continue;
      }
      const Index rank = made.replica.passes[move->pass].rank;
      const bool fits =
          timeline->memory[rank].peak <= made.graph.placement.ranks[rank].memory_limit;
      REQUIRE((order.excess_after(*move) == 0) == fits);
      ++(fits ? fitting : too_large);
      if (fits) {
        REQUIRE(order.apply(*move));
      }
    }
  }
  CHECK(fitting > 1000);
  CHECK(too_large > 50);
}

TEST_CASE(
    "dip pass order: the excess is what all passes need beyond the room, and moves keep count") {
  std::size_t over = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip pass order excess");
    PipelineShape shape = shape_of(seed);
    shape.split = seed % 2 > 0;
    OrderCase made = test::random_order_case(random, shape);
    test::set_limit(made.graph, random.integer(1, 300));
    made.replica = dip::replica_graphs(made.graph).front();
    // Pass by pass, from the rules of sim/graph/memory.hpp read along the order of a rank.
    const auto excess_of = [&](std::span<const Index> sequence) {
      dip::ByteCount sum = 0;
      std::vector<dip::ByteCount> held(made.replica.ranks.size(), 0);
      for (const Index pass : sequence) {
        const Index rank = made.replica.passes[pass].rank;
        const Index pair = made.replica.passes[pass].pair;
        const auto& option = made.replica.options_of(pair)[made.choice[pair]];
        const auto needed = held[rank] + dip::needed_bytes(made.replica, pass, option);
        sum += std::max<dip::ByteCount>(0, needed - made.replica.room[rank]);
        held[rank] += dip::held_change(made.replica, pass, option);
      }
      return sum;
    };
    PassOrder order(made.replica);
    order.assign(made.sequence, made.choice);
    for (int step = 0; step < 100; ++step) {
      REQUIRE(order.excess() == excess_of(order.sequence()));
      over += order.excess() > 0 ? 1U : 0U;
      const auto before = test::rank_orders(made.replica, order.sequence());
      if (const auto move = random_move(made.replica, before, random)) {
        const dip::ByteCount after = order.excess_after(*move);
        if (order.apply(*move)) {
          REQUIRE(order.excess() == after);
        }
      }
    }
  }
  CHECK(over > 500);
}

}  // namespace dipsim
