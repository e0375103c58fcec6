// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/pass_order.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/schedulers/dip_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace dipsim {

namespace {

using dip::Index;
using dip::Move;
using dip::Nanoseconds;
using dip::PassOrder;
using dip::ReplicaGraph;
using test::OrderCase;

}  // namespace

TEST_CASE(
    "dip pass order: for a swap of neighbours the estimate is the longest path through them") {
  // Where links don't queue it is exact for the two, so a lower bound of the makespan.
  std::size_t swaps = 0;
  std::size_t exact = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip pass order estimate");
    const OrderCase made = test::random_order_case(
        random, {.queueing = false, .split = seed % 2 == 0, .zero_times = seed % 5 == 0});
    PassOrder order(made.replica);
    order.assign(made.sequence, made.choice);
    for (int step = 0; step < 200; ++step) {
      CAPTURE(step);
      const auto first = static_cast<Index>(
          random.integer(0, static_cast<std::int64_t>(made.replica.passes.size()) - 1));
      const Index second = order.next(first);
      if (second == ReplicaGraph::kNone) {
        continue;
      }
      const Move later{.pass = first, .target = second, .later = true};
      const Move earlier{.pass = second, .target = first, .later = false};
      const Nanoseconds estimate = order.estimate(later);
      REQUIRE(order.estimate(earlier) == estimate);  // the same swap
      if (!order.apply(step % 2 == 0 ? later : earlier)) {
        continue;
      }
      ++swaps;
      exact += estimate == order.makespan() ? 1U : 0U;
      REQUIRE(estimate <= order.makespan());
      const auto through = [&](Index pass) {
        return order.head(pass) + order.duration(pass) + order.tail(pass);
      };
      REQUIRE(estimate == std::max(through(first), through(second)));
    }
  }
  CHECK(swaps > 2000);
  CHECK(exact > 100);
}

TEST_CASE("dip pass order: the estimate of any move is the path through what it shifts") {
  // A chain of known times on one rank and its consequences on a second one: rank 0 runs
  // F0 F1 F2 B0 B1 B2, each forward is followed by one on rank 1, arriving 5 later.
  test::PipelineSpec spec;
  spec.ranks = 2;
  spec.latency = Duration{5};
  for (int m = 0; m < 3; ++m) {
    spec.works.push_back(test::work(m, 0, {test::keep(10, 20, 1)}));
  }
  const TaskGraph graph = test::pipeline(spec);
  const ReplicaGraph replica = dip::replica_graphs(graph).front();
  // Pairs by microbatch and chunk: F of microbatch m on rank r is 2 m + r; B stand in the order
  // of the works, against the flow: rank 1 first.
  const auto f = [](Index m, Index r) { return 2 * m + r; };
  const auto b = [](Index m, Index r) { return 6 + 2 * m + (1 - r); };
  const std::vector<Index> sequence = {f(0, 0), f(1, 0), f(2, 0), f(0, 1), b(0, 1), f(1, 1),
                                       b(1, 1), f(2, 1), b(2, 1), b(0, 0), b(1, 0), b(2, 0)};
  PassOrder order(replica);
  order.assign(sequence, dip::Choice(6, 0));
  // Rank 1: F0 15-25, B0 25-45, F1 45-55, B1 55-75, F2 75-85, B2 85-105. Rank 0: B0 50, B1 80,
  // B2 110-130.
  REQUIRE(order.makespan() == 130);
  // F0 of rank 1 behind F1: F1 25-35 (arrives 25), F0 35-45, B0 45-65 … everything 10 later.
  CHECK(order.tail(f(0, 1)) == 105);
  // F0 behind B0 is impossible; the estimate of F1 before B0: F1 25-35, B0 35-55, then B1, F2 and
  // B2 as before: 55-75-85-105.
  const Move swap{.pass = f(1, 1), .target = b(0, 1), .later = false};
  CHECK(order.estimate(swap) == 130);
  REQUIRE(order.apply(swap));
  CHECK(order.makespan() == 130);
  CHECK(order.head(b(0, 1)) == 35);
  // From F0 F1 B0 B1 F2 B2: F2 (arrives 35) two places forward, before B0: F2 35-45, B0 45-65,
  // B1 65-85, B2 85-105.
  const Move far{.pass = f(2, 1), .target = b(0, 1), .later = false};
  CHECK(order.estimate(far) == 130);
  REQUIRE(order.apply(far));
  CHECK(order.head(b(1, 1)) == 65);
  CHECK(order.makespan() == 130);
  // B2 of rank 0 before B0: it starts at 110, and two more follow.
  const Move worse{.pass = b(2, 0), .target = b(0, 0), .later = false};
  CHECK(order.estimate(worse) == 170);
  REQUIRE(order.apply(worse));
  CHECK(order.makespan() == 170);
}

namespace {

/// Per task what it waits for.
std::vector<std::vector<TaskId>> inputs_of(const TaskGraph& graph) {
  std::vector<std::vector<TaskId>> inputs(graph.tasks.size());
  for (const Edge& edge : graph.edges) {
    inputs[edge.to.row()].push_back(edge.from);
  }
  return inputs;
}

/// Passes whose end explains that `at` starts when it does: the one before it on its rank, or one
/// whose result arrives then, directly, by its own transfer, or by a transfer that has queued since
/// the end of that pass.
std::set<Index> explanations(const OrderCase& made, const Timeline& timeline,
                             const std::vector<std::vector<TaskId>>& inputs, const PassOrder& order,
                             Index at) {
  const TaskGraph& graph = made.graph;
  std::vector<Index> pass_of(graph.tasks.size(), ReplicaGraph::kNone);
  for (Index pass = 0; pass < made.replica.passes.size(); ++pass) {
    pass_of[made.replica.tasks[pass].row()] = pass;
  }
  const auto span = [&](TaskId task) { return timeline.spans[task.row()]; };
  const Time start = span(made.replica.tasks[at]).start;
  std::set<Index> found;
  if (const Index previous = order.previous(at);
      previous != ReplicaGraph::kNone && span(made.replica.tasks[previous]).end == start) {
    found.insert(previous);
  }
  for (const TaskId input : inputs[made.replica.tasks[at].row()]) {
    if (span(input).end != start) {
      continue;
    }
    if (graph.task(input).op != Op::Transfer) {
      found.insert(pass_of[input.row()]);
      continue;
    }
    // Back along the transfers of the link that follow each other without a gap.
    std::vector<TaskId> open = {input};
    std::set<TaskId> seen = {input};
    while (!open.empty()) {
      const TaskId transfer = open.back();
      open.pop_back();
      const TaskId sender = inputs[transfer.row()].front();
      if (span(sender).end == span(transfer).start) {
        found.insert(pass_of[sender.row()]);
      }
      for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
        const Task& other = graph.tasks[t];
        if (other.op == Op::Transfer && other.rank == graph.task(transfer).rank &&
            other.peer == graph.task(transfer).peer &&
            timeline.spans[t].start + other.fixed == span(transfer).start &&
            seen.insert(TaskId(t)).second) {
          open.emplace_back(t);
        }
      }
    }
  }
  return found;
}

}  // namespace

TEST_CASE("dip pass order: a critical path spans the makespan, and each step waited for the next") {
  std::size_t by_rank = 0;
  std::size_t by_input = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip pass order critical path");
    const OrderCase made = test::random_order_case(
        random, {.queueing = seed % 2 == 0, .split = seed % 4 >= 2, .zero_times = seed % 5 == 0});
    const Timeline timeline =
        OrderEvaluator(made.graph)
            .evaluate(test::schedule_of(made.graph, made.replica, made.sequence, made.choice));
    const auto inputs = inputs_of(made.graph);
    PassOrder order(made.replica);
    order.assign(made.sequence, made.choice);
    for (const std::uint64_t salt : {std::uint64_t{0}, ~std::uint64_t{0}, random.bits()}) {
      const auto path = order.critical_path(salt);
      REQUIRE(!path.empty());
      CHECK(order.head(path.front()) + order.duration(path.front()) == order.makespan());
      CHECK(order.head(path.back()) == 0);
      for (std::size_t i = 0; i + 1 < path.size(); ++i) {
        const auto reasons = explanations(made, timeline, inputs, order, path[i]);
        CHECK(reasons.contains(path[i + 1]));
        ++(order.previous(path[i]) == path[i + 1] ? by_rank : by_input);
      }
      if (seed % 2 == 1) {  // without queues it is a longest path
        for (const Index pass : path) {
          CHECK(order.head(pass) + order.duration(pass) + order.tail(pass) == order.makespan());
        }
      }
    }
  }
  CHECK(by_rank > 100);
  CHECK(by_input > 100);
}

}  // namespace dipsim
