// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/held.hpp"
#include "schedulers/dip/memory.hpp"
#include "schedulers/dip/memory_improver.hpp"
#include "schedulers/dip/memory_problem.hpp"
#include "schedulers/dip/memory_solver.hpp"
#include "sim/core/random.hpp"
#include "tests/schedulers/dip_graphs.hpp"
#include "tests/schedulers/memory_cbc.hpp"
#include "tests/schedulers/memory_instances.hpp"
#include "tests/support/environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace dipsim {

namespace {

using dip::Index;
using dip::MemoryProof;
using dip::MemorySolver;
using dip::Nanoseconds;
using test::MemoryInstance;

struct Solved {
  MemoryProof proof;
  std::vector<Index> choice;
};

Solved solve(const MemoryInstance& instance, const dip::MemoryEffort& effort,
             std::vector<Index> start) {
  MemorySolver solver(instance.pairs.size(), instance.free.size(), instance.options.size());
  Solved solved{.proof = {}, .choice = std::move(start)};
  solved.proof = solver.solve(instance.problem(), solved.choice, effort);
  return solved;
}

Solved solve(const MemoryInstance& instance, const dip::MemoryEffort& effort) {
  return solve(instance, effort, test::most_saving(instance));
}

/// Calls f(choice) for every choice.
template <class F>
void for_each_choice(const MemoryInstance& instance, const F& f) {
  std::vector<Index> choice(instance.pairs.size(), 0);
  while (true) {
    f(choice);
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] == instance.pairs[i].option_count) {
      choice[i++] = 0;
    }
    if (i == choice.size()) {
      return;
    }
  }
}

/// Least time of all choices that fit.
Nanoseconds optimum(const MemoryInstance& instance) {
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  for_each_choice(instance, [&](const std::vector<Index>& choice) {
    if (test::choice_fits(instance, choice)) {
      best = std::min(best, dip::time_of(instance.problem(), choice));
    }
  });
  return best;
}

}  // namespace

TEST_CASE("dip memory solver: the optimum lies between bound and answer") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "memory solver tiny");
    const auto pairs = static_cast<std::size_t>(random.integer(1, 6));
    const MemoryInstance instance = test::arbitrary_instance(pairs, 4, random);
    const Solved solved = solve(instance, {.gap = 0.0, .iterations = 100});
    const Nanoseconds best = optimum(instance);
    CHECK(test::choice_fits(instance, solved.choice));
    CHECK(solved.proof.time == dip::time_of(instance.problem(), solved.choice));
    CHECK(solved.proof.bound <= best);
    CHECK(best <= solved.proof.time);
  }
}

TEST_CASE("dip memory solver: a problem without its loose positions is the same problem") {
  std::size_t dropped = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "memory solver reduce");
    const auto pairs = static_cast<std::size_t>(random.integer(1, 5));
    const MemoryInstance instance = test::arbitrary_instance(pairs, 3, random);
    dip::TightProblem tight(instance.pairs.size(), instance.free.size());
    const dip::MemoryProblem& reduced = tight.reduce(instance.problem());
    const MemoryInstance smaller{.pairs = {reduced.pairs.begin(), reduced.pairs.end()},
                                 .options = instance.options,
                                 .free = {reduced.free.begin(), reduced.free.end()}};
    dropped += instance.free.size() - smaller.free.size();
    bool same = true;
    for_each_choice(instance, [&](const std::vector<Index>& choice) {
      same = same && test::choice_fits(instance, choice) == test::choice_fits(smaller, choice);
    });
    CHECK(same);
  }
  CHECK(dropped > 200);
}

TEST_CASE("dip memory solver: where everything fits, it proves that nothing is faster") {
  RandomStream random(1, "memory solver loose");
  const MemoryInstance instance = test::layered_instance(50, true, 0.0, random);
  const Solved solved = solve(instance, {.gap = 0.0, .iterations = 5});
  CHECK(solved.choice == test::fastest(instance));
  CHECK(solved.proof.bound == solved.proof.time);
  CHECK(solved.proof.gap() == 0.0);
  CHECK(solved.proof.recompute_gap() == 0.0);
}

TEST_CASE("dip memory solver: pairs of equal size leave no gap") {
  // Intervals of one size make a totally unimodular matrix: the relaxation is exact.
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "memory solver unimodular");
    MemoryInstance instance;
    for (Index i = 0; i < 40; ++i) {
      const Nanoseconds saved = random.integer(1, 1000) * 1000;
      instance.pairs.push_back({.place = {}, .first_option = 2 * i, .option_count = 2});
      instance.options.push_back({.forward = 1'000'000, .backward = 2'000'000, .held = 10});
      instance.options.push_back({.forward = 1'000'000, .backward = 2'000'000 + saved, .held = 0});
    }
    const std::size_t positions = test::place_pairs(instance.pairs, 12, false, random);
    instance.free.assign(positions, 10 * random.integer(2, 6));
    const Solved solved = solve(instance, {.gap = 0.0, .iterations = 3000});
    CHECK(test::choice_fits(instance, solved.choice));
    CHECK(solved.proof.recompute_gap() < 0.002);
  }
}

TEST_CASE(
    "dip memory solver: bounds hold and gaps are small on two hundred pairs with ten options") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "memory solver large");
    const MemoryInstance instance =
        test::layered_instance(200, seed % 2 == 0, 0.3 + 0.06 * static_cast<double>(seed), random);
    const Solved solved = solve(instance, {.gap = 0.0});
    CHECK(test::choice_fits(instance, solved.choice));
    CHECK(solved.proof.time >= solved.proof.bound);
    CHECK(solved.proof.gap() < 0.01);
    // The gap that was asked for ends it early.
    const Solved hasty = solve(instance, {});
    CHECK(hasty.proof.gap() <= 0.05);
    CHECK(hasty.proof.iterations < solved.proof.iterations);
    CHECK(hasty.proof.bound <= solved.proof.time);
    CHECK(solved.proof.bound <= hasty.proof.time);
  }
}

TEST_CASE("dip memory solver: never worse than the start, and the same every time") {
  RandomStream random(4, "memory solver start");
  for (int k = 0; k < 20; ++k) {
    const MemoryInstance instance = test::arbitrary_instance(30, 6, random);
    const Solved first = solve(instance, {.gap = 0.0, .iterations = 60});
    const Solved again = solve(instance, {.gap = 0.0, .iterations = 60});
    CHECK(first.choice == again.choice);
    CHECK(first.proof.bound == again.proof.bound);
    const Solved on = solve(instance, {.gap = 0.0, .iterations = 1}, first.choice);
    CHECK(on.proof.time <= first.proof.time);
  }
}

TEST_CASE("dip memory solver: a solver that has solved another problem before gives the same") {
  RandomStream random(5, "memory solver reuse");
  const MemoryInstance large = test::arbitrary_instance(30, 6, random);
  const MemoryInstance small = test::arbitrary_instance(9, 3, random);
  MemorySolver solver(30, large.free.size(), large.options.size());
  std::vector<Index> choice = test::most_saving(large);
  solver.solve(large.problem(), choice, {.gap = 0.0, .iterations = 40});
  choice = test::most_saving(small);
  const MemoryProof proof = solver.solve(small.problem(), choice, {.gap = 0.0, .iterations = 40});
  const Solved fresh = solve(small, {.gap = 0.0, .iterations = 40});
  CHECK(choice == fresh.choice);
  CHECK(proof.bound == fresh.proof.bound);
}

TEST_CASE("dip memory solver: Cbc's optimum lies between bound and answer") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "memory solver cbc");
    const MemoryInstance instance = seed % 2 == 0
                                        ? test::arbitrary_instance(25, 5, random)
                                        : test::layered_instance(25, seed % 4 == 1, 0.6, random);
    const auto exact = test::solve_with_cbc(instance.problem(), 20.0);
    if (!exact) {
      test::report_skipped("this build has no Cbc (Debian: coinor-libcbc-dev)");
      return;
    }
    const Solved solved = solve(instance, {.gap = 0.0});
    CHECK(static_cast<double>(solved.proof.time) >= exact->bound * (1.0 - 1e-6));
    if (exact->optimal) {
      const Nanoseconds best = dip::time_of(instance.problem(), exact->choice);
      REQUIRE(test::choice_fits(instance, exact->choice));
      CHECK(solved.proof.bound <= best);
      CHECK(best <= solved.proof.time);
      CHECK(static_cast<double>(solved.proof.time - best) <=
            solved.proof.gap() * static_cast<double>(solved.proof.time));
    }
  }
}

TEST_CASE("dip memory solver: improving a composition keeps every rank within its limit") {
  const auto strategies = [](std::int64_t size) {
    return std::vector{test::split_strategy(RecomputeMode::Keep, 40, 40, 30, 10 * size, 3 * size),
                       test::split_strategy(RecomputeMode::Mixed, 40, 52, 30, 6 * size, 3 * size),
                       test::split_strategy(RecomputeMode::Full, 40, 80, 30, size, 3 * size, size)};
  };
  int improved = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "memory improver");
    test::PipelineSpec spec;
    spec.ranks = 2;
    spec.memory_limit = Bytes{random.integer(100, 200)};
    for (int m = 0; m < 10; ++m) {
      spec.works.push_back(test::work(m, 0, strategies(random.integer(1, 5))));
      spec.works.back().split = true;
    }
    const dip::ReplicaGraph replica = dip::replica_graphs(test::pipeline(spec)).front();
    // All forwards, all I, all W: the numbering.
    std::vector<Index> sequence(replica.passes.size());
    std::iota(sequence.begin(), sequence.end(), Index{0});
    dip::Choice choice = dip::most_saving_choice(replica);
    if (std::ranges::min(dip::least_free(replica, sequence, choice)) < 0) {
      continue;
    }
    dip::MemoryChooser(replica).choose(sequence, choice);
    const auto total = [&] {
      Nanoseconds sum = 0;
      for (Index pair = 0; pair < replica.pair_count(); ++pair) {
        sum += replica.options_of(pair)[choice[pair]].time();
      }
      return sum;
    };
    const Nanoseconds before = total();
    dip::MemoryImprover improver(replica);
    const bool better = improver.improve(sequence, choice);
    improved += better ? 1 : 0;
    CHECK(std::ranges::min(dip::least_free(replica, sequence, choice)) >= 0);
    CHECK(better == (total() < before));
    Nanoseconds proved = 0;
    for (const MemoryProof& proof : improver.proofs()) {
      CHECK(proof.bound <= proof.time);
      proved += proof.time;
    }
    CHECK(proved == total());
  }
  CHECK(improved > 0);
}

}  // namespace dipsim
