// SPDX-License-Identifier: Apache-2.0
#include "schedulers/exact/layer.hpp"
#include "schedulers/exact/problem.hpp"
#include "tests/schedulers/exact_oracle.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace dipsim::exact {

namespace {

/// Three split pairs on one rank: W of 5, 4 and 1, which hold 3 bytes each before they run.
Problem three_pairs(std::int64_t limit) {
  test::GraphBuilder g(1);
  for (const std::int64_t w : {5, 4, 1}) {
    Strategy cost = test::split(1, 1, w);
    cost.f_to_i = Bytes{3};
    cost.i_to_w = Bytes{3};
    g.add_pair_edges(g.add_pair(RankId{0}, test::Passes::Split, cost));
  }
  g.graph.placement.ranks[0].memory_limit = Bytes{limit};
  return make_problem(g.graph, test::first_strategies(g.graph));
}

struct Entry {
  Mask fillers = 0;  ///< done; bits 0, 1, 2: W of 5, 4, 1
  Nanoseconds free = 0;
  Nanoseconds now = 0;
};

/// What is left of nodes that have done F and I of the first two pairs, and F of the third.
std::vector<Entry> filtered(const Problem& problem, const std::vector<Entry>& entries) {
  Mask done = problem.all();
  for (Index p = 0; p < problem.passes.size(); ++p) {
    done &= problem.passes[p].tail == 1 ? ~bit(p) : ~Mask{0};  // I of the third
  }
  Layer layer;
  for (const Entry& entry : entries) {
    const std::vector<Nanoseconds> times = {entry.free, entry.now};
    layer.add({.done = done, .fillers = entry.fillers, .sum = entry.free + entry.now}, times);
  }
  Dominance(problem).filter(layer, 1000);
  std::vector<Entry> left;
  left.reserve(layer.nodes.size());
  for (const Node& node : layer.nodes) {
    left.push_back({node.fillers, layer.times_of(node)[0], layer.times_of(node)[1]});
  }
  return left;
}

constexpr std::int64_t kLoose = 1000;
constexpr std::int64_t kTight = 8;  // three pairs hold 9

}  // namespace

TEST_CASE("exact dominance: equal fillers compare by every time") {
  const Problem problem = three_pairs(kLoose);
  CHECK(filtered(problem, {{0, 10, 5}, {0, 10, 5}}).size() == 1);
  CHECK(filtered(problem, {{0, 10, 5}, {0, 11, 5}}).size() == 1);
  CHECK(filtered(problem, {{0, 10, 6}, {0, 11, 5}}).size() == 2);
}

TEST_CASE("exact dominance: who is behind by a filler must have the time to run it") {
  for (const std::int64_t limit : {kLoose, kTight}) {
    const Problem problem = three_pairs(limit);
    CHECK(filtered(problem, {{0b00, 10, 5}, {0b10, 14, 5}}).size() == 1);
    CHECK(filtered(problem, {{0b00, 10, 5}, {0b10, 13, 5}}).size() == 2);
    CHECK(filtered(problem, {{0b11, 10, 5}, {0b00, 10, 5}}).size() == 1);
  }
}

TEST_CASE("exact dominance: a longer filler done makes up for a shorter one only at ease") {
  // The first has run W of 5, the second W of 4: the first has less left to do.
  CHECK(filtered(three_pairs(kLoose), {{0b01, 10, 5}, {0b10, 10, 5}}).size() == 1);
  CHECK(filtered(three_pairs(kLoose), {{0b01, 10, 5}, {0b10, 9, 5}}).size() == 2);
  // With a limit the two may free different bytes.
  CHECK(filtered(three_pairs(kTight), {{0b01, 10, 5}, {0b10, 10, 5}}).size() == 2);
}

TEST_CASE("exact dominance: nodes of different sets and those at the cutoff are kept apart") {
  const Problem problem = three_pairs(kLoose);
  Layer layer;
  const std::vector<Nanoseconds> times = {10, 5};
  layer.add({.done = 0b1, .bound = 20, .sum = 15}, times);
  layer.add({.done = 0b10, .bound = 20, .sum = 15}, times);
  layer.add({.done = 0b100, .bound = 30, .sum = 15}, times);
  Dominance(problem).filter(layer, 30);
  CHECK(layer.nodes.size() == 2);
}

TEST_CASE("exact narrow: the least bounds stay, in their order, and the best dropped is told") {
  Layer layer;
  for (const Nanoseconds bound : {7, 3, 9, 5}) {
    layer.add({.bound = bound}, {});
  }
  CHECK(narrow(layer, 2) == 7);
  REQUIRE(layer.nodes.size() == 2);
  CHECK(layer.nodes[0].bound == 3);
  CHECK(layer.nodes[1].bound == 5);
  CHECK(narrow(layer, 2) > 1'000'000);
}

}  // namespace dipsim::exact
