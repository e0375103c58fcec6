// SPDX-License-Identifier: Apache-2.0
// The searches over priorities: simulated annealing and tree search.
#include "schedulers/dip/batch_evaluator.hpp"
#include "schedulers/dip/compose.hpp"
#include "schedulers/dip/local_search.hpp"
#include "schedulers/dip/order.hpp"
#include "schedulers/dip/tree_search.hpp"
#include "sim/core/random.hpp"
#include "tests/schedulers/dip_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

using dip::BatchEvaluator;
using dip::Candidate;
using dip::Composition;
using dip::Found;
using dip::GroupOrder;
using dip::Index;
using dip::Nanoseconds;
using dip::ReplicaGraph;
using dip::SearchBudget;
using test::PipelineSpec;

DipOptions with_jobs(std::size_t jobs) {
  DipOptions options;
  options.jobs = jobs;
  return options;
}

/// A graph to search on and where to start.
struct Case {
  explicit Case(TaskGraph made)
      : graph(std::move(made)), replica(dip::replica_graphs(graph).front()) {
    const DipOptions options = with_jobs(1);
    BatchEvaluator evaluator(graph, replica, options);
    start.candidate = {.order = dip::natural_order(replica), .way = evaluator.ways().front()};
    start.composition = evaluator.compose({&start.candidate, 1}).front();
  }

  /// The best three.
  [[nodiscard]] std::vector<Found> anneal(std::size_t evaluations, std::uint64_t seed,
                                          std::size_t jobs) const {
    const DipOptions options = with_jobs(jobs);
    BatchEvaluator evaluator(graph, replica, options);
    dip::Elites elites(replica, 3);
    search_locally(evaluator, replica, start, SearchBudget(evaluations), seed, elites);
    return {elites.all().begin(), elites.all().end()};
  }

  [[nodiscard]] Found climb(std::size_t evaluations, const TreeSearchOptions& tree,
                            std::uint64_t seed = 1, std::size_t jobs = 1) const {
    const DipOptions options = with_jobs(jobs);
    BatchEvaluator evaluator(graph, replica, options);
    return search_tree(evaluator, start, SearchBudget(evaluations), tree, seed);
  }

  TaskGraph graph;
  ReplicaGraph replica;
  Found start;
};

/// Random pipelines, at memory for one to a few microbatches.
Case random_case(std::uint64_t seed, bool split) {
  RandomStream random(seed, "dip search");
  TaskGraph graph = test::random_graph(random, {.ranks = 3,
                                                .microbatches = 6,
                                                .queueing = seed % 2 == 0,
                                                .split = split,
                                                .all_split = split});
  test::set_limit(graph, test::tightest_limit(graph) * random.integer(4, 12) / 4);
  return Case(std::move(graph));
}

bool same(const Found& a, const Found& b) {
  return a.candidate.order == b.candidate.order && a.candidate.way == b.candidate.way &&
         a.composition.sequence == b.composition.sequence &&
         a.composition.choice == b.composition.choice &&
         a.composition.makespan == b.composition.makespan;
}

bool all_same(const std::vector<Found>& a, const std::vector<Found>& b) {
  return std::ranges::equal(a, b, same);
}

/// What was found is an order of all groups whose composition is what it says.
void check_found(const Case& searched, const Found& found) {
  CHECK(found.composition.makespan <= searched.start.composition.makespan);
  CHECK(test::is_permutation_of_groups(searched.replica, found.candidate.order.forward));
  CHECK(test::is_permutation_of_groups(searched.replica, found.candidate.order.backward));
  REQUIRE(test::follows_precedence(searched.replica, found.composition.sequence));
  const Schedule schedule = test::schedule_of(searched.graph, searched.replica,
                                              found.composition.sequence, found.composition.choice);
  const Timeline timeline = OrderEvaluator(searched.graph).evaluate(schedule);
  CHECK(timeline.makespan.count() == found.composition.makespan);
  CHECK(test::peak_of(timeline) <= searched.graph.placement.ranks.front().memory_limit);
}

}  // namespace

TEST_CASE("dip local search: the plan does not depend on the number of threads") {
  std::size_t improved = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const Case searched = random_case(seed, false);
    const std::vector<Found> alone = searched.anneal(67, seed, 1);
    check_found(searched, alone.front());
    improved += alone.front().composition.makespan < searched.start.composition.makespan ? 1U : 0U;
    for (const std::size_t jobs : {2U, 3U, 5U, 16U}) {
      CAPTURE(jobs);
      CHECK(all_same(searched.anneal(67, seed, jobs), alone));
    }
  }
  CHECK(improved > 4);
}

TEST_CASE("dip local search: a small budget is kept on any number of threads") {
  // With more candidates at once than evaluations left, the ones beyond the budget don't count.
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const Case searched = random_case(seed + 20, false);
    for (std::size_t budget = 0; budget <= 4; ++budget) {
      CAPTURE(budget);
      const std::vector<Found> alone = searched.anneal(budget, seed, 1);
      CHECK(all_same(searched.anneal(budget, seed, 5), alone));
      CHECK(alone.size() <= budget + 1);
      if (budget == 0) {
        CHECK(all_same(alone, {searched.start}));
      }
    }
  }
}

TEST_CASE("dip local search: it changes the way of composing too") {
  // Split backwards have ways for each weight backlog; one of them or an order is better.
  std::size_t other_ways = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const Case searched = random_case(seed + 40, true);
    const Found found = searched.anneal(150, seed, 1).front();
    check_found(searched, found);
    other_ways += found.candidate.way == searched.start.candidate.way ? 0U : 1U;
  }
  CHECK(other_ways > 0);
}

TEST_CASE("dip tree search: the plan does not depend on the number of threads") {
  std::size_t improved = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    const Case searched = random_case(seed + 60, seed % 2 == 1);
    TreeSearchOptions tree;
    tree.separate_backwards = seed % 4 >= 2;
    tree.uniform_rollouts = seed % 3 == 0;
    const Found alone = searched.climb(150, tree, seed, 1);
    check_found(searched, alone);
    improved += alone.composition.makespan < searched.start.composition.makespan ? 1U : 0U;
    const DipOptions options = with_jobs(1);
    BatchEvaluator evaluator(searched.graph, searched.replica, options);
    if (!same(alone, searched.start)) {  // the order gives the composition
      const auto again =
          evaluator.compose_once({&alone.candidate, 1}, searched.start.composition.choice);
      CHECK(again.front().sequence == alone.composition.sequence);
    }
    if (!tree.separate_backwards) {
      CHECK(alone.candidate.order.backward == alone.candidate.order.forward);
    }
    for (const std::size_t jobs : {2U, 3U, 5U}) {
      CAPTURE(jobs);
      CHECK(same(searched.climb(150, tree, seed, jobs), alone));
    }
  }
  CHECK(improved > 2);
}

TEST_CASE("dip tree search: it spends its budget and no more") {
  // One leaf with as many completions as there are evaluations tries the first ones of several.
  std::size_t improved = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    const Case searched = random_case(seed + 80, false);
    TreeSearchOptions wide;
    wide.uniform_rollouts = true;
    CHECK(same(searched.climb(0, wide, seed), searched.start));
    for (const std::size_t budget : {1U, 3U, 8U}) {
      CAPTURE(budget);
      TreeSearchOptions one = wide;
      one.leaves = 1;
      one.rollouts = budget;
      const Found found = searched.climb(budget, one, seed);
      CHECK(same(searched.climb(budget, wide, seed), found));
      improved += same(found, searched.start) ? 0U : 1U;
    }
  }
  CHECK(improved > 2);
}

namespace {

/// The least makespan of all permutations of the groups, composed as the search does it.
Nanoseconds best_of_all(const Case& searched, bool separate) {
  const DipOptions options = with_jobs(1);
  BatchEvaluator evaluator(searched.graph, searched.replica, options);
  Candidate candidate = searched.start.candidate;
  Nanoseconds best = searched.start.composition.makespan;
  const auto try_backwards = [&] {
    const auto result = evaluator.compose_once({&candidate, 1}, searched.start.composition.choice);
    best = std::min(best, result.front().makespan);
  };
  do {
    candidate.order.backward = candidate.order.forward;
    if (!separate) {
      try_backwards();
      continue;
    }
    std::ranges::sort(candidate.order.backward);
    do {
      try_backwards();
    } while (std::ranges::next_permutation(candidate.order.backward).found);
  } while (std::ranges::next_permutation(candidate.order.forward).found);
  return best;
}

}  // namespace

TEST_CASE("dip tree search: on three or four groups it finds the best permutation") {
  std::size_t improved = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip search tiny");
    PipelineSpec spec;
    spec.ranks = 2;
    spec.latency = Duration{random.integer(0, 10)};
    const int groups = seed % 2 == 0 ? 4 : 3;
    for (int m = 0; m < groups; ++m) {
      for (std::int64_t slices = random.integer(1, 2); slices > 0; --slices) {
        const std::int64_t f = random.integer(1, 60);
        spec.works.push_back(
            test::work(m, 0,
                       {test::keep(f, random.integer(1, 90), 4),
                        test::strategy(RecomputeMode::Full, f, random.integer(100, 200), 1, 3)}));
      }
    }
    TaskGraph graph = test::pipeline(spec);
    test::set_limit(graph, test::tightest_limit(graph) + random.integer(0, 12));
    const Case searched(std::move(graph));
    REQUIRE(searched.replica.groups.size() == static_cast<std::size_t>(groups));
    TreeSearchOptions tree;
    tree.separate_backwards = seed % 4 == 1;
    tree.beta = 0.5;  // explores all of the tree
    const Nanoseconds best = best_of_all(searched, tree.separate_backwards);
    improved += best < searched.start.composition.makespan ? 1U : 0U;
    CHECK(
        searched.climb(tree.separate_backwards ? 8'000 : 2'000, tree, seed).composition.makespan ==
        best);
    tree.uniform_rollouts = true;
    CHECK(
        searched.climb(tree.separate_backwards ? 4'000 : 1'000, tree, seed).composition.makespan ==
        best);
  }
  CHECK(improved > 5);
}

}  // namespace dipsim
