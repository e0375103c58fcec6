// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/memory.hpp"
#include "schedulers/dip/memory_level.hpp"
#include "schedulers/dip/range_slack.hpp"
#include "schedulers/dip/replica_graph.hpp"
#include "sim/core/random.hpp"
#include "tests/schedulers/dip_graphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

namespace dipsim {

namespace {

using dip::Choice;
using dip::Index;
using dip::MemoryChooser;
using dip::ReplicaGraph;
using test::PipelineSpec;

constexpr Index kKeep = 0;
constexpr Index kFull = 1;

/// A pair on one rank that keeps `held` bytes and saves `saved` ns by it, or holds 1 byte.
std::vector<Strategy> keep_or_full(std::int64_t held, std::int64_t saved) {
  return {test::strategy(RecomputeMode::Keep, 100, 100, held),
          test::strategy(RecomputeMode::Full, 100, 100 + saved, 1)};
}

PipelineSpec one_rank(const std::vector<std::vector<Strategy>>& pairs, std::int64_t limit) {
  PipelineSpec spec;
  spec.ranks = 1;
  spec.memory_limit = Bytes{limit};
  for (std::size_t m = 0; m < pairs.size(); ++m) {
    spec.works.push_back(test::work(static_cast<int>(m), 0, pairs[m]));
  }
  return spec;
}

ReplicaGraph replica_of(const PipelineSpec& spec) {
  const TaskGraph graph = test::pipeline(spec);
  return dip::replica_graphs(graph).front();
}

/// Bytes in use while each pass of a one-rank sequence runs, by the definition.
std::vector<dip::ByteCount> loads(const ReplicaGraph& replica, const std::vector<Index>& sequence,
                                  const Choice& choice) {
  std::vector<dip::ByteCount> loads;
  for (std::size_t p = 0; p < sequence.size(); ++p) {
    dip::ByteCount load = replica.transient[sequence[p]];
    for (Index pair = 0; pair < replica.pair_count(); ++pair) {
      const auto position_of = [&](Index pass) {
        return std::ranges::find(sequence, pass) - sequence.begin();
      };
      const auto begin = position_of(pair);
      auto end = begin;
      if (replica.backward[pair] != ReplicaGraph::kNone) {
        end = position_of(replica.backward[pair]);
      }
      const auto here = static_cast<std::ptrdiff_t>(p);
      const dip::PairOption& option = replica.options_of(pair)[choice[pair]];
      load += begin <= here && here <= end ? option.held : 0;
      load += here == end && end != begin ? option.rebuilt : 0;
      if (replica.weight[pair] != ReplicaGraph::kNone) {
        load += end < here && here <= position_of(replica.weight[pair]) ? option.kept : 0;
      }
    }
    loads.push_back(load);
  }
  return loads;
}

bool fits(const ReplicaGraph& replica, const std::vector<Index>& sequence, const Choice& choice) {
  return std::ranges::max(loads(replica, sequence, choice)) <= replica.room[0];
}

/// Time of all passes under a choice.
dip::Nanoseconds total_time(const ReplicaGraph& replica, const Choice& choice) {
  dip::Nanoseconds total = 0;
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    total += replica.options_of(pair)[choice[pair]].time();
  }
  return total;
}

/// Least time over all choices of two strategies each that fit.
dip::Nanoseconds optimum(const ReplicaGraph& replica, const std::vector<Index>& sequence) {
  const std::size_t pairs = replica.pair_count();
  dip::Nanoseconds best = std::numeric_limits<dip::Nanoseconds>::max();
  for (std::uint32_t kept = 0; kept < (1U << pairs); ++kept) {
    Choice choice(pairs, kFull);
    for (std::size_t p = 0; p < pairs; ++p) {
      choice[p] = (kept >> p & 1U) != 0 ? kKeep : kFull;
    }
    if (fits(replica, sequence, choice)) {
      best = std::min(best, total_time(replica, choice));
    }
  }
  return best;
}

/// All forwards, then all backwards in the same order: everything is held at one instant.
std::vector<Index> all_at_once(const ReplicaGraph& replica) {
  std::vector<Index> sequence(replica.passes.size());
  std::iota(sequence.begin(), sequence.end(), Index{0});
  return sequence;
}

/// A random order of one rank in which the passes of each pair stand in theirs.
std::vector<Index> random_sequence(const ReplicaGraph& replica, RandomStream& random) {
  std::vector<Index> sequence = all_at_once(replica);
  random.shuffle(std::span(sequence));
  for (Index pair = 0; pair < replica.pair_count(); ++pair) {
    std::vector<std::ptrdiff_t> places;
    std::vector<Index> passes;
    for (const Index pass : {pair, replica.backward[pair], replica.weight[pair]}) {
      if (const auto found = std::ranges::find(sequence, pass); found != sequence.end()) {
        places.push_back(found - sequence.begin());
        passes.push_back(pass);
      }
    }
    std::ranges::sort(places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      sequence[static_cast<std::size_t>(places[i])] = passes[i];
    }
  }
  return sequence;
}

Choice choose(const ReplicaGraph& replica, const std::vector<Index>& sequence) {
  Choice choice(replica.pair_count());
  MemoryChooser(replica).choose(sequence, choice);
  return choice;
}

}  // namespace

TEST_CASE("dip memory: with room for everything every pair is fastest") {
  const ReplicaGraph replica =
      replica_of(one_rank({keep_or_full(10, 50), keep_or_full(10, 60), keep_or_full(10, 70)}, 30));
  CHECK(choose(replica, all_at_once(replica)) == Choice{kKeep, kKeep, kKeep});
}

TEST_CASE("dip memory: the limit is tight to the byte") {
  // Three pairs at once, 10 bytes each kept, 1 each else: 30 fits all, 29 all but one.
  const auto pairs = std::vector{keep_or_full(10, 50), keep_or_full(10, 60), keep_or_full(10, 70)};
  const ReplicaGraph replica = replica_of(one_rank(pairs, 29));
  CHECK(choose(replica, all_at_once(replica)) == Choice{kFull, kKeep, kKeep});
}

TEST_CASE("dip memory: at one instant it keeps the pairs that save most, as the optimum does") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip memory one constraint");
    std::vector<std::int64_t> saved = {10, 20, 30, 40, 50, 60, 70, 80, 90};
    random.shuffle(std::span(saved));
    std::vector<std::vector<Strategy>> pairs;
    pairs.reserve(saved.size());
    for (const std::int64_t each : saved) {
      pairs.push_back(keep_or_full(10, each));
    }
    const ReplicaGraph replica = replica_of(one_rank(pairs, random.integer(9, 100)));
    const std::vector<Index> sequence = all_at_once(replica);
    CHECK(total_time(replica, choose(replica, sequence)) == optimum(replica, sequence));
  }
}

TEST_CASE("dip memory: among equal pairs it keeps as many as can be kept") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip memory equal pairs");
    const auto count = static_cast<std::size_t>(random.integer(1, 9));
    const std::vector pairs(count, keep_or_full(10, 50));
    // In full mode all of them fit at any time.
    const ReplicaGraph replica =
        replica_of(one_rank(pairs, static_cast<std::int64_t>(count) + random.integer(0, 40)));
    const std::vector<Index> sequence = random_sequence(replica, random);
    CHECK(total_time(replica, choose(replica, sequence)) == optimum(replica, sequence));
  }
}

TEST_CASE("dip memory: rebuilt activations count during the backward only") {
  // Full: 1 byte held and 9 rebuilt, so that one at a time needs 10 in either mode.
  auto strategies = keep_or_full(10, 50);
  strategies[kFull].rebuilt = Bytes{9};
  const ReplicaGraph replica = replica_of(one_rank({strategies, strategies}, 11));
  // F0 F1 B0 B1: under full 1, 2, 11, 10. Keeping 0 would need 11 at F1 and at B0 11: fits.
  // Keeping 1 as well would need 20.
  const Choice choice = choose(replica, {0, 1, 2, 3});
  CHECK(choice == Choice{kKeep, kFull});
  CHECK(fits(replica, {0, 1, 2, 3}, choice));
}

TEST_CASE("dip memory: a step that never pays is not taken") {
  auto strategies = keep_or_full(10, 50);
  strategies.insert(strategies.begin() + 1,
                    test::strategy(RecomputeMode::Selective, 100, 160, 5));  // slower than full
  const ReplicaGraph replica = replica_of(one_rank({strategies}, 9));
  CHECK(choose(replica, {0, 1}) == Choice{2});
}

TEST_CASE("dip memory: it climbs from full to selective to keep as the limit grows") {
  const std::vector<Strategy> strategies = {test::strategy(RecomputeMode::Keep, 100, 200, 8),
                                            test::strategy(RecomputeMode::Selective, 100, 206, 5),
                                            test::strategy(RecomputeMode::Full, 100, 300, 1)};
  const std::vector<Index> modes = {2, 2, 2, 2, 1, 1, 1, 0, 0};
  for (std::int64_t limit = 1; limit <= 9; ++limit) {
    const ReplicaGraph replica = replica_of(one_rank({strategies}, limit));
    CHECK(choose(replica, {0, 1}) == Choice{modes[static_cast<std::size_t>(limit - 1)]});
  }
}

TEST_CASE("dip memory: steps of equal worth are taken as far as there is room") {
  std::vector<Strategy> strategies;
  for (std::int64_t layers = 8; layers >= 0; --layers) {  // of which so many keep all
    strategies.push_back(
        test::strategy(RecomputeMode::Mixed, 100, 200 + 7 * (8 - layers), 2 + 5 * layers));
  }
  for (std::int64_t limit = 2; limit <= 50; ++limit) {
    const ReplicaGraph replica = replica_of(one_rank({strategies}, limit));
    const auto kept = static_cast<Index>(std::min<std::int64_t>((limit - 2) / 5, 8));
    CHECK(choose(replica, {0, 1}) == Choice{8 - kept});
  }
}

TEST_CASE("dip memory: a pair that went some steps leaves the rest to others") {
  // At once 4 + 4 bytes least; 5 per layer kept; room for three layers.
  std::vector<Strategy> strategies;
  for (std::int64_t layers = 2; layers >= 0; --layers) {
    strategies.push_back(
        test::strategy(RecomputeMode::Mixed, 100, 200 + 7 * (2 - layers), 4 + 5 * layers));
  }
  const ReplicaGraph replica = replica_of(one_rank({strategies, strategies}, 8 + 15));
  CHECK(choose(replica, {0, 1, 2, 3}) == Choice{0, 1});  // first the pair that ends first
}

TEST_CASE("dip memory: what waits for W counts until W has run") {
  const auto strategies =
      std::vector{test::split_strategy(RecomputeMode::Keep, 100, 100, 50, 10, 6),
                  test::split_strategy(RecomputeMode::Full, 100, 200, 50, 1, 6)};
  PipelineSpec spec = one_rank({strategies, strategies}, 0);
  for (test::PipelineWork& work : spec.works) {
    work.split = true;
  }
  const auto choice_at = [&](std::int64_t limit, const std::vector<Index>& sequence) {
    spec.memory_limit = Bytes{limit};
    return choose(replica_of(spec), sequence);
  };
  // Passes: F0 F1, I0 I1 (2 3), W0 W1 (4 5). One pair after the other, W0 at the end: while pair 1
  // is there, 6 bytes wait for W0.
  const std::vector<Index> late = {0, 2, 1, 3, 4, 5};
  CHECK(choice_at(16, late) == Choice{kKeep, kKeep});
  CHECK(choice_at(15, late) == Choice{kKeep, kFull});
  // After I1 both wait, which no choice changes.
  CHECK(choice_at(12, late) == Choice{kKeep, kFull});
  // W0 before F1: nothing waits.
  CHECK(choice_at(10, {0, 2, 4, 1, 3, 5}) == Choice{kKeep, kKeep});
}

TEST_CASE("dip memory: strategies may differ in what they leave to W") {
  // The faster one keeps less until I and more until W.
  const auto strategies =
      std::vector{test::split_strategy(RecomputeMode::Keep, 100, 100, 50, 5, 9),
                  test::split_strategy(RecomputeMode::Full, 100, 200, 50, 4, 2)};
  PipelineSpec spec = one_rank({strategies}, 8);
  spec.works.front().split = true;
  CHECK(choose(replica_of(spec), {0, 1, 2}) == Choice{kFull});
  spec.memory_limit = Bytes{9};
  CHECK(choose(replica_of(spec), {0, 1, 2}) == Choice{kKeep});
}

TEST_CASE("dip memory: the choice fits at every position, whatever the strategies") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "dip memory fits");
    std::vector<std::vector<Strategy>> pairs;
    const auto count = random.integer(1, 30);
    for (std::int64_t p = 0; p < count; ++p) {
      std::vector<Strategy> strategies;
      for (std::int64_t s = random.integer(1, 5); s > 0; --s) {
        strategies.push_back(test::split_strategy(RecomputeMode::Mixed, random.integer(1, 100),
                                                  random.integer(1, 100), random.integer(1, 100),
                                                  random.integer(0, 40), random.integer(0, 20),
                                                  random.integer(0, 20)));
      }
      pairs.push_back(strategies);
    }
    PipelineSpec spec = one_rank(pairs, 1000);
    for (test::PipelineWork& work : spec.works) {
      work.split = random.integer(0, 1) == 1;
    }
    spec.works.back().has_backward = false;
    ReplicaGraph replica = replica_of(spec);
    for (dip::ByteCount& bytes : replica.transient) {
      bytes = random.integer(0, 10);
    }
    const std::vector<Index> sequence = random_sequence(replica, random);
    const Choice saving = dip::most_saving_choice(replica);
    replica.room[0] = std::ranges::max(loads(replica, sequence, saving)) + random.integer(0, 200);
    const Choice choice = choose(replica, sequence);
    CHECK(fits(replica, sequence, choice));
    CHECK(total_time(replica, choice) <= total_time(replica, saving));
  }
}

TEST_CASE("dip memory: levels hold what their mode says") {
  PipelineSpec spec = one_rank({keep_or_full(10, 50), keep_or_full(20, 50)}, 100);
  const TaskGraph graph = test::pipeline(spec);
  const ReplicaGraph replica = dip::replica_graphs(graph).front();
  const auto level = [&](RecomputeMode mode) {
    return dip::memory_level(replica, dip::uniform_choice(replica, mode));
  };
  const auto held = [&](RecomputeMode mode) {
    std::vector<dip::ByteCount> bytes;
    for (const dip::PairLevel& pair : level(mode).pairs) {
      bytes.push_back(pair.held);
    }
    return bytes;
  };
  CHECK(held(RecomputeMode::Keep) == std::vector<dip::ByteCount>{10, 20});
  CHECK(level(RecomputeMode::Keep).alone == std::vector<dip::ByteCount>{20});
  // None is selective: the fastest that saves at least as much is full.
  CHECK(held(RecomputeMode::Selective) == std::vector<dip::ByteCount>{1, 1});
  CHECK(held(RecomputeMode::Full) == std::vector<dip::ByteCount>{1, 1});
}

TEST_CASE("dip memory: range slack agrees with a plain array") {
  RandomStream random(3, "range slack");
  dip::RangeSlack slack;
  for (const std::size_t size : {1U, 7U, 8U, 9U, 16U, 100U}) {
    std::vector<std::int64_t> plain(size);
    for (std::int64_t& value : plain) {
      value = random.integer(-100, 100);
    }
    slack.assign(plain);
    for (int step = 0; step < 500; ++step) {
      const auto first =
          static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(size) - 1));
      const auto last = static_cast<std::size_t>(
          random.integer(static_cast<std::int64_t>(first) + 1, static_cast<std::int64_t>(size)));
      const std::int64_t bytes = random.integer(-20, 20);
      if (step % 2 == 0) {
        slack.take(first, last, bytes);
      } else {
        const std::int64_t at_last = random.integer(-20, 20);
        slack.take(first, last - 1, bytes, at_last);
        plain[last - 1] += bytes - at_last;
      }
      const auto begin = plain.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = plain.begin() + static_cast<std::ptrdiff_t>(last);
      std::for_each(begin, end, [&](std::int64_t& value) { value -= bytes; });
      CHECK(slack.least(first, last) == *std::min_element(begin, end));
      CHECK(slack.at(first) == plain[first]);
    }
    CHECK(slack.least(0, size) == *std::ranges::min_element(plain));
  }
}

}  // namespace dipsim
