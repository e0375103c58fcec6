// SPDX-License-Identifier: Apache-2.0
// Offloading behind the searches of dip: what it gains, and that it never costs anything.
#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/copy_lanes.hpp"
#include "schedulers/dip/offload.hpp"
#include "schedulers/dip/planner.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/order_evaluator.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"
#include "tests/support/invariants.hpp"
#include "tests/support/memory_needs.hpp"
#include "tests/support/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace dipsim {
namespace {

using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;

constexpr RankId kRank0{0};

DipOptions options(bool offload, std::size_t evaluations = 40) {
  DipOptions options;
  options.evaluations = evaluations;
  options.jobs = 1;
  options.offload = offload;
  return options;
}

Duration makespan(const TaskGraph& graph, const Schedule& schedule) {
  return OrderEvaluator(graph).evaluate(schedule).makespan;
}

std::int64_t offloading(const TaskGraph& graph, const Schedule& schedule) {
  return std::ranges::count_if(schedule.chosen, [&](StrategyId id) {
    return graph.strategy(id).mode == RecomputeMode::Offload;
  });
}

bool within_limits(const TaskGraph& graph, const Schedule& schedule) {
  const std::vector<Bytes> peaks = test::peaks_in_order(graph, schedule);
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    if (peaks[rank] > graph.placement.ranks[rank].memory_limit) {
      return false;
    }
  }
  return true;
}

/// Eight microbatches over two ranks: on the first one F takes 10 and B 20, and 10 more where it
/// recomputes; a pair holds 10 bytes or, recomputing, 2. What rank 0 sends is back on the way after
/// 92 ns, so that it needs several microbatches in flight to have something to do.
struct Pipeline {
  GraphBuilder g{2};

  Pipeline(std::int64_t copy, std::int64_t limit, bool copies = true) {
    Strategy keep = fused(10, 20);
    keep.f_to_i = Bytes{10};
    Strategy offload = keep;
    offload.mode = RecomputeMode::Offload;
    offload.copy = ns(copy);
    offload.offload = Bytes{10};
    Strategy full = fused(10, 30);
    full.mode = RecomputeMode::Full;
    full.f_to_i = Bytes{2};
    full.rebuilt = Bytes{8};
    std::vector<Strategy> near = {keep, full};
    if (copies) {
      near.insert(near.begin() + 1, offload);
    }
    for (int m = 0; m < 8; ++m) {
      Work work = g.graph.works.front();
      work.portions.front().microbatch = MicrobatchId(m);
      if (m > 0) {
        g.graph.works.push_back(work);
      }
      const PairId first = g.add_pair(kRank0, Passes::Fused, near);
      const PairId second = g.add_pair(RankId(1), Passes::Fused, fused(1, 1));
      if (copies) {
        g.add_offload(first);
      } else {
        g.add_pair_edges(first);
      }
      g.add_pair_edges(second);
      g.add_transfer(g.f(first), g.f(second), ns(0), ns(45));
      g.add_transfer(g.b(second), g.b(first), ns(0), ns(45));
      for (const PairId pair : {first, second}) {
        for (const TaskId task : {g.f(pair), g.b(pair)}) {
          g.graph.tasks[task.row()].work = WorkId(m);
        }
      }
    }
    g.graph.placement.ranks[0].memory_limit = Bytes{limit};
    g.graph.placement.ranks[1].memory_limit = Bytes{1000};
    validate(g.graph);
  }
};

/// One rank: F0 F1 F2 F3 B3 B2 B1 B0, with room for two kept pairs beside one that recomputes.
struct Stack {
  GraphBuilder g{1};
  std::vector<PairId> pairs;

  Stack(std::int64_t copy, std::int64_t limit) {
    Strategy keep = fused(10, 20);
    keep.f_to_i = Bytes{10};
    Strategy offload = keep;
    offload.mode = RecomputeMode::Offload;
    offload.copy = ns(copy);
    offload.offload = Bytes{10};
    Strategy full = fused(10, 30);
    full.mode = RecomputeMode::Full;
    full.f_to_i = Bytes{2};
    full.rebuilt = Bytes{8};
    for (int m = 0; m < 4; ++m) {
      pairs.push_back(g.add_pair(kRank0, Passes::Fused, {keep, offload, full}));
      g.add_offload(pairs.back());
    }
    g.graph.placement.ranks[0].memory_limit = Bytes{limit};
  }

  /// All recompute.
  [[nodiscard]] dip::Composition start(const dip::ReplicaGraph& replica) const {
    dip::Composition composition;
    for (const bool forward : {true, false}) {
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        const PairId pair = pairs[forward ? p : pairs.size() - 1 - p];
        const TaskId task = forward ? g.f(pair) : g.b(pair);
        const auto found = std::ranges::find(replica.tasks, task);
        composition.sequence.push_back(static_cast<dip::Index>(found - replica.tasks.begin()));
      }
    }
    composition.choice.assign(pairs.size(), 1);
    composition.makespan = dip::makespan_of(replica, composition.sequence, composition.choice);
    return composition;
  }
};

}  // namespace

TEST_CASE("the searches see neither the strategies that offload nor the copies") {
  const Stack stack(5, 100);
  const dip::ReplicaGraph replica = std::move(dip::replica_graphs(stack.g.graph).front());
  CHECK(replica.passes.size() == 8);
  CHECK(replica.options.size() == 8);  // keep and full of each pair
  CHECK(replica.options_of(0)[1].mode == RecomputeMode::Full);
  CHECK(replica.options_of(0)[1].strategy == 2);
  REQUIRE(replica.offloads_of(0).size() == 1);
  CHECK(replica.offloads_of(0)[0].option.strategy == 1);
  CHECK(replica.offloads_of(0)[0].out == 5);
  CHECK(replica.offloads_of(0)[0].away == 10);
  // B still waits for its F.
  CHECK(replica.passes[replica.backward[0]].predecessors == 1);
}

TEST_CASE("with copies that are hidden nothing is recomputed, in the room of less than all pairs") {
  Stack stack(10, 32);
  const dip::ReplicaGraph replica = std::move(dip::replica_graphs(stack.g.graph).front());
  dip::Composition composition = stack.start(replica);
  CHECK(composition.makespan == 160);
  const auto windows = dip::offload(replica, composition);
  CHECK(composition.makespan == 120);  // four times 10 + 20
  REQUIRE_FALSE(windows.empty());
  CHECK(windows.size() < 4);  // what has room stays
}

TEST_CASE("copies that are too long to hide leave the plan as it was") {
  Stack stack(1000, 32);
  const dip::ReplicaGraph replica = std::move(dip::replica_graphs(stack.g.graph).front());
  dip::Composition composition = stack.start(replica);
  dip::offload(replica, composition);
  CHECK(composition.makespan <= 160);
  dip::Composition again = stack.start(replica);
  CHECK(dip::offload(replica, again).empty());
}

TEST_CASE("at tight memory a plan gets faster by offloading, and stays within its limit") {
  for (const std::int64_t limit : {18, 20, 28, 40}) {
    CAPTURE(limit);
    const Pipeline tight(8, limit);
    const auto make = limit % 3 == 0 ? make_dip : make_dip_plus;
    const Schedule with = make(options(true))->order(tight.g.graph);
    const Schedule without = make(options(false))->order(tight.g.graph);
    CHECK(test::broken_invariant(tight.g.graph, with) == "");
    CHECK(within_limits(tight.g.graph, with));
    CHECK(within_limits(tight.g.graph, without));
    CHECK(offloading(tight.g.graph, without) == 0);
    CHECK(offloading(tight.g.graph, with) == std::ssize(with.offloads));
    CHECK(makespan(tight.g.graph, with) < makespan(tight.g.graph, without));
  }
}

TEST_CASE("without offloading a plan is that of the graph without copies") {
  const Pipeline plain(8, 24, false);
  const Pipeline copies(8, 24);
  const Schedule a = make_dip_plus(options(false))->order(plain.g.graph);
  const Schedule b = make_dip_plus(options(false))->order(copies.g.graph);
  CHECK(makespan(plain.g.graph, a) == makespan(copies.g.graph, b));
}

TEST_CASE("offloading without memory choice is refused") {
  DipOptions wrong = options(true);
  wrong.memory_choice = false;
  CHECK(test::error_of([&] { static_cast<void>(make_dip_plus(wrong)); }).where().find("offload") !=
        std::string::npos);
}

TEST_CASE("copies out go as early, copies in as late as the others of their lane allow") {
  using dip::CopyLane;
  const auto text = [](const CopyLane& lane) {
    std::string all;
    for (const dip::PlannedCopy& copy : lane) {
      all += std::to_string(copy.pair) + ":" + std::to_string(copy.start) + ".." +
             std::to_string(copy.end) + " ";
    }
    return all;
  };
  CopyLane out;
  add_copy_out(out, 2, 2, 30, 10);
  add_copy_out(out, 0, 0, 10, 10);
  CHECK(text(out) == "0:10..20 2:30..40 ");
  const dip::CopyRows moved = add_copy_out(out, 1, 1, 20, 15);
  CHECK(text(out) == "0:10..20 1:20..35 2:35..45 ");
  CHECK(moved.first == 1);
  CHECK(moved.last == 3);
  CopyLane in;
  add_copy_in(in, 0, 9, 100, 10);
  add_copy_in(in, 2, 5, 60, 10);
  CHECK(text(in) == "2:50..60 0:90..100 ");
  const dip::CopyRows pulled = add_copy_in(in, 1, 7, 70, 15);
  CHECK(text(in) == "2:45..55 1:55..70 0:90..100 ");
  CHECK(pulled.first == 0);
  CHECK(pulled.last == 2);
}

TEST_CASE("on random problems no plan is slower for offloading, and many are faster") {
  int faster = 0;
  int tried = 0;
  for (std::size_t index = 0; index < 120; ++index) {
    CAPTURE(index);
    test::RandomProblem problem = test::random_problem(7, index);
    const bool split = index % 2 == 1;
    const auto planner = [&](bool offload) {
      return split ? make_dip_zb(options(offload, 10)) : make_dip(options(offload, 10));
    };
    try {
      const Placement placement = make_dip(options(false))->place(problem.costs, problem.batch);
      const auto lowered = [&](bool offload) {
        return problem.costs.lower(planner(offload)->slice(placement, problem.batch, problem.costs),
                                   problem.batch);
      };
      RandomStream random(3, "offload test", index);
      TaskGraph graph = lowered(true);
      const auto limits = test::tight_limits(graph, test::most_saving(graph), random);
      for (std::size_t rank = 0; rank < limits.size(); ++rank) {
        graph.placement.ranks[rank].memory_limit = limits[rank];
      }
      const Schedule with = planner(true)->order(graph);
      const Schedule without = planner(false)->order(graph);
      ++tried;
      CHECK(test::broken_invariant(graph, with) == "");
      CHECK(within_limits(graph, with));
      CHECK(within_limits(graph, without));
      CHECK(makespan(graph, with) <= makespan(graph, without));
      faster += makespan(graph, with) < makespan(graph, without) ? 1 : 0;
    } catch (const Error& error) {
      CHECK(error.kind() != ErrorKind::Internal);
    }
  }
  CHECK(tried > 60);
  CHECK(faster > 5);
}

}  // namespace dipsim
