// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/held.hpp"
#include "schedulers/dip/memory.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/polish.hpp"
#include "sim/core/random.hpp"
#include "tests/schedulers/dip_cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace dipsim {

namespace {

using dip::Composition;
using dip::ReplicaGraph;

dip::Nanoseconds makespan_of(const ReplicaGraph& replica, const Composition& composition) {
  std::vector<dip::Nanoseconds> durations(replica.passes.size());
  dip::set_durations(replica, composition.choice, durations);
  dip::PassClock clock(replica);
  return dip::retime(clock, composition.sequence, durations);
}

/// A random order on ranks with a little more memory than it needs with the most saving strategies,
/// which are chosen by the greedy rule.
struct TightCase {
  explicit TightCase(std::uint64_t seed) {
    RandomStream random(seed, "dip polish");
    test::OrderCase made = test::random_order_case(random, {.split = seed % 2 == 0});
    composition.sequence = made.sequence;
    composition.choice = dip::most_saving_choice(made.replica);
    const auto free = dip::least_free(made.replica, made.sequence, composition.choice);
    for (std::size_t r = 0; r < free.size(); ++r) {
      made.graph.placement.ranks[r].memory_limit.count += random.integer(0, 200) - free[r];
    }
    graph = made.graph;
    replica = dip::replica_graphs(graph).front();
    dip::MemoryChooser(replica).choose(composition.sequence, composition.choice);
    composition.makespan = makespan_of(replica, composition);
  }

  TaskGraph graph;
  ReplicaGraph replica;
  Composition composition;
};

}  // namespace

TEST_CASE("dip polish: a better choice for the same order fits and is never slower") {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const TightCase made(seed);
    Composition improved = made.composition;
    dip::improve_choice(made.replica, {}, improved);
    CHECK(improved.sequence == made.composition.sequence);
    CHECK(dip::keep_to_limit(made.replica, improved.sequence, improved.choice));
    CHECK(improved.makespan <= made.composition.makespan);
    CHECK(improved.makespan == makespan_of(made.replica, improved));
    better += improved.makespan < made.composition.makespan ? 1 : 0;
  }
  CHECK(better > 0);
}

TEST_CASE(
    "dip polish: no worse than the best elite, inside the limit, in evaluations and in time") {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const TightCase made(seed);
    const std::vector<dip::Found> elites(3, {.candidate = {}, .composition = made.composition});
    DipOptions options;
    options.evaluations = 10;
    options.jobs = 2;
    const bool timed = seed % 2 == 1;
    options.time = std::chrono::milliseconds(timed ? 20 : 0);
    const dip::SearchBudget budget =
        timed ? dip::SearchBudget(options.time) : dip::SearchBudget(options.evaluations);
    const Composition polished = dip::polish(made.replica, options, budget, elites);
    CHECK(polished.makespan <= made.composition.makespan);
    CHECK(polished.makespan == makespan_of(made.replica, polished));
    CHECK(dip::keep_to_limit(made.replica, polished.sequence, polished.choice));
    CHECK(test::follows_precedence(made.replica, polished.sequence));
    better += polished.makespan < made.composition.makespan ? 1 : 0;
    Composition order_only = made.composition;
    dip::polish_order(made.replica, options, budget, order_only);
    CHECK(order_only.choice == made.composition.choice);
    CHECK(order_only.makespan <= made.composition.makespan);
  }
  CHECK(better > 6);
}

}  // namespace dipsim
