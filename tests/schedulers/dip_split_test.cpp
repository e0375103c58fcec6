// SPDX-License-Identifier: Apache-2.0
// Graphs with a split backward, seen whole and split, and the way back.
#include "schedulers/dip/backward_views.hpp"
#include "schedulers/dip/interleave.hpp"
#include "schedulers/dip/split_backwards.hpp"
#include "sim/core/random.hpp"
#include "tests/schedulers/dip_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

using dip::Composition;
using dip::GraphView;
using dip::Index;
using dip::PairOption;
using dip::ReplicaGraph;
using test::PipelineShape;

/// The same random pipeline with whole backwards, and with split ones that have twins.
struct Twins {
  Twins(std::uint64_t seed, double speed) : Twins(seed, {.queueing = seed % 2 == 0}, speed) {}

  TaskGraph whole;
  TaskGraph split;

 private:
  Twins(std::uint64_t seed, PipelineShape shape, double speed) {
    RandomStream random(seed, "dip twins");
    whole = test::random_graph(random, shape);
    shape.all_split = true;
    shape.twins = true;
    RandomStream again(seed, "dip twins");
    split = test::random_graph(again, shape);
    for (TaskGraph* graph : {&whole, &split}) {
      graph->placement.ranks.front().speed = speed;
    }
  }
};

auto figures(const PairOption& option) {
  return std::tuple(option.forward, option.backward, option.weight, option.mode, option.held,
                    option.rebuilt, option.kept);
}

/// Any order and strategies of a graph, timed.
Composition random_composition(const TaskGraph& graph, const ReplicaGraph& replica,
                               RandomStream& random) {
  Composition made;
  made.sequence = test::random_sequence(replica, random);
  made.choice = test::random_choice(replica, random);
  const Schedule schedule = test::schedule_of(graph, replica, made.sequence, made.choice);
  made.makespan = OrderEvaluator(graph).evaluate(schedule).makespan.count();
  return made;
}

Timeline timeline_of(const TaskGraph& graph, const ReplicaGraph& replica,
                     const Composition& composition) {
  const Schedule schedule =
      test::schedule_of(graph, replica, composition.sequence, composition.choice);
  CHECK_NOTHROW(validate(graph, schedule));
  return OrderEvaluator(graph).evaluate(schedule);
}

std::vector<Bytes> peaks_of(const Timeline& timeline) {
  std::vector<Bytes> peaks;
  for (const MemoryCurve& curve : timeline.memory) {
    peaks.push_back(curve.peak);
  }
  return peaks;
}

}  // namespace

TEST_CASE("dip split: seen whole, a split graph is the graph that was never split") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Twins twins(seed, seed % 3 == 0 ? 0.7 : 1.0);
    const ReplicaGraph expected = dip::replica_graphs(twins.whole).front();
    const ReplicaGraph replica = dip::replica_graphs(twins.split).front();
    const std::optional<GraphView> view = dip::whole_backwards(replica);
    REQUIRE(view.has_value());
    const ReplicaGraph& graph = view->graph;
    REQUIRE(graph.passes.size() == expected.passes.size());
    CHECK(graph.first_weight == graph.passes.size());
    CHECK(graph.transient == expected.transient);
    CHECK(graph.backward == expected.backward);
    CHECK(graph.weight == expected.weight);
    CHECK(graph.option_count == expected.option_count);
    CHECK(graph.component == expected.component);
    CHECK(graph.links == expected.links);
    for (Index pass = 0; pass < graph.passes.size(); ++pass) {
      CHECK(view->pass_of[pass] == pass);
      CHECK(graph.passes[pass].rank == expected.passes[pass].rank);
      CHECK(graph.passes[pass].pair == expected.passes[pass].pair);
      CHECK(graph.passes[pass].predecessors == expected.passes[pass].predecessors);
      CHECK(graph.passes[pass].first_hop == expected.passes[pass].first_hop);
      CHECK(graph.passes[pass].last_hop == expected.passes[pass].last_hop);
    }
    REQUIRE(graph.hops.size() == expected.hops.size());
    for (std::size_t h = 0; h < graph.hops.size(); ++h) {
      CHECK(graph.hops[h].to == expected.hops[h].to);
      CHECK(graph.hops[h].link == expected.hops[h].link);
      CHECK(graph.hops[h].occupied == expected.hops[h].occupied);
      CHECK(graph.hops[h].latency == expected.hops[h].latency);
    }
    for (Index pair = 0; pair < graph.pair_count(); ++pair) {
      for (std::size_t o = 0; o < graph.options_of(pair).size(); ++o) {
        CHECK(figures(graph.options_of(pair)[o]) == figures(expected.options_of(pair)[o]));
      }
    }
  }
}

TEST_CASE("dip split: a view keeps the strategies of its kind, and knows where they were") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip views");
    const TaskGraph task_graph =
        test::random_graph(random, {.split = true, .twins = seed % 2 == 0});
    const ReplicaGraph replica = dip::replica_graphs(task_graph).front();
    const auto check = [&](const GraphView& view, bool whole) {
      for (Index pair = 0; pair < replica.pair_count(); ++pair) {
        const auto all = replica.options_of(pair);
        const bool has_weight = replica.weight[pair] != ReplicaGraph::kNone;
        std::vector<Index> expected;
        for (Index o = 0; o < all.size(); ++o) {
          if (!has_weight || (all[o].weight == 0) == whole) {
            expected.push_back(o);
          }
        }
        REQUIRE(view.graph.option_count[pair] == expected.size());
        for (Index o = 0; o < expected.size(); ++o) {
          const Index row = view.graph.first_option[pair] + o;
          CHECK(view.option_of[row] == expected[o]);
          CHECK(figures(view.graph.options[row]) == figures(all[expected[o]]));
        }
      }
    };
    const GraphView split = dip::split_backwards(replica);
    check(split, false);
    CHECK(split.graph.passes.size() == replica.passes.size());
    const auto whole = dip::whole_backwards(replica);
    const bool any_split = replica.first_weight < replica.passes.size();
    CHECK(whole.has_value() == (seed % 2 == 0 || !any_split));
    if (whole) {
      check(*whole, true);
    }
  }
}

TEST_CASE("dip split: a W that takes no time but reads what I leaves is no whole backward") {
  const std::vector<Strategy> reads = {test::split_strategy(RecomputeMode::Keep, 2, 4, 0, 10, 30)};
  const auto graph_of = [](std::vector<Strategy> strategies) {
    test::PipelineWork work = test::work(0, 0, std::move(strategies));
    work.split = true;
    return test::pipeline({.ranks = 1, .segments = {1}, .works = {work}});
  };
  CHECK_FALSE(dip::whole_backwards(dip::replica_graphs(graph_of(reads)).front()).has_value());
  const std::optional<GraphView> view =
      dip::whole_backwards(dip::replica_graphs(graph_of(test::with_twins(reads))).front());
  REQUIRE(view.has_value());
  REQUIRE(view->graph.options_of(0).size() == 1);
  CHECK(view->graph.options_of(0).front().kept == 0);
  CHECK(view->option_of == std::vector<Index>{1});
}

TEST_CASE("dip split: a composition of a view takes and holds as much on the whole graph") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip expand");
    const Twins twins(seed, seed % 3 == 0 ? 0.7 : 1.0);
    const ReplicaGraph replica = dip::replica_graphs(twins.split).front();
    const ReplicaGraph never_split = dip::replica_graphs(twins.whole).front();
    const GraphView whole = *dip::whole_backwards(replica);
    const Composition of_view = random_composition(twins.whole, never_split, random);
    const Composition expanded = dip::expand(replica, whole, of_view);
    CHECK(expanded.makespan == of_view.makespan);
    REQUIRE(test::follows_precedence(replica, expanded.sequence));
    const Timeline timeline = timeline_of(twins.split, replica, expanded);
    CHECK(timeline.makespan.count() == of_view.makespan);
    CHECK(peaks_of(timeline) == peaks_of(timeline_of(twins.whole, never_split, of_view)));
    for (std::size_t i = 0; i < expanded.sequence.size(); ++i) {
      const Index pass = expanded.sequence[i];
      const Index weight = replica.weight[replica.passes[pass].pair];
      if (replica.kind(pass) == dip::PassKind::Backward && weight != ReplicaGraph::kNone) {
        REQUIRE(i + 1 < expanded.sequence.size());
        CHECK(expanded.sequence[i + 1] == weight);
      }
    }

    const GraphView split = dip::split_backwards(replica);
    Composition late;
    late.sequence = test::random_sequence(split.graph, random);
    late.choice = test::random_choice(split.graph, random);
    const Composition same = dip::expand(replica, split, late);
    CHECK(same.sequence == late.sequence);
    for (Index pair = 0; pair < replica.pair_count(); ++pair) {
      CHECK(figures(replica.options_of(pair)[same.choice[pair]]) ==
            figures(split.graph.options_of(pair)[late.choice[pair]]));
    }
  }
}

TEST_CASE("dip split: each W gets time of its own exactly where memory allows, and nothing slows") {
  std::size_t split = 0;
  std::size_t refused = 0;
  std::size_t faster = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip split where it fits");
    Twins twins(seed, 1.0);
    for (Strategy& strategy : twins.split.strategies) {
      strategy.i_to_w = Bytes{strategy.w.count() > 0 ? random.integer(0, 300) : 0};
    }
    ReplicaGraph replica = dip::replica_graphs(twins.split).front();
    const ReplicaGraph never_split = dip::replica_graphs(twins.whole).front();
    const GraphView whole = *dip::whole_backwards(replica);
    const Composition start =
        dip::expand(replica, whole, random_composition(twins.whole, never_split, random));
    // What it needs as it is, or somewhat more.
    const auto needs = peaks_of(timeline_of(twins.split, replica, start));
    for (std::size_t r = 0; r < needs.size(); ++r) {
      twins.split.placement.ranks[r].memory_limit =
          needs[r] + Bytes{seed % 3 == 0 ? 0 : random.integer(0, 40)};
    }
    replica = dip::replica_graphs(twins.split).front();
    const auto fits = [&](const Composition& composition) {
      const auto peaks = peaks_of(timeline_of(twins.split, replica, composition));
      return std::ranges::equal(peaks, twins.split.placement.ranks, std::less_equal{}, {},
                                &Rank::memory_limit);
    };
    Composition made = start;
    dip::split_where_it_fits(replica, made);
    CHECK(made.sequence == start.sequence);
    CHECK(made.makespan <= start.makespan);
    faster += made.makespan < start.makespan ? 1U : 0U;
    CHECK(timeline_of(twins.split, replica, made).makespan.count() == made.makespan);
    CHECK(fits(made));
    for (Index pair = 0; pair < replica.pair_count(); ++pair) {
      if (replica.weight[pair] == ReplicaGraph::kNone) {
        CHECK(made.choice[pair] == start.choice[pair]);
        continue;
      }
      // Twins stand behind the strategies that they are twins of.
      const Index twin = start.choice[pair] - 1;
      if (made.choice[pair] == twin) {
        ++split;
        continue;
      }
      REQUIRE(made.choice[pair] == start.choice[pair]);
      ++refused;
      Composition more = made;
      more.choice[pair] = twin;
      CHECK_FALSE(fits(more));
    }
  }
  CHECK(split > 100);
  CHECK(refused > 50);
  CHECK(faster > 20);
}

}  // namespace dipsim
