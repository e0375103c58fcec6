// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/deadlock.hpp"

#include "sim/core/random.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::fused;
using test::GraphBuilder;
using test::Passes;

std::vector<WaitEdge> waits_of(const std::vector<std::array<std::size_t, 2>>& pairs) {
  std::vector<WaitEdge> waits;
  for (const auto& [task, needs] : pairs) {
    waits.push_back({TaskId(task), TaskId(needs), "test"});
  }
  return waits;
}

bool is_cycle(const std::vector<WaitEdge>& cycle, const std::vector<WaitEdge>& waits) {
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const WaitEdge& edge = cycle[i];
    const bool known = std::ranges::any_of(waits, [&](const WaitEdge& wait) {
      return wait.task == edge.task && wait.needs == edge.needs && wait.reason == edge.reason;
    });
    if (!known || edge.needs != cycle[(i + 1) % cycle.size()].task) {
      return false;
    }
  }
  return !cycle.empty();
}

TEST_CASE("waits without a cycle have none") {
  CHECK(find_cycle(0, {}).empty());
  CHECK(find_cycle(3, {}).empty());
  const auto diamond = waits_of({{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}, {0, 3}});
  CHECK(find_cycle(4, diamond).empty());
}

TEST_CASE("a cycle is given in order, whatever waits lie around it") {
  const auto waits = waits_of({{5, 0}, {0, 1}, {1, 2}, {2, 3}, {3, 1}, {2, 4}});
  const auto cycle = find_cycle(6, waits);
  CHECK(cycle.size() == 3);
  CHECK(is_cycle(cycle, waits));
}

TEST_CASE("a task that waits for itself is a cycle of one") {
  const auto waits = waits_of({{0, 1}, {1, 1}});
  const auto cycle = find_cycle(2, waits);
  REQUIRE(cycle.size() == 1);
  CHECK(cycle[0].task == TaskId(1));
  CHECK(cycle[0].needs == TaskId(1));
}

TEST_CASE("a cycle takes the shortcut where there is one") {
  const auto waits = waits_of({{0, 1}, {1, 2}, {2, 3}, {3, 0}, {1, 0}});
  CHECK(find_cycle(4, waits).size() == 2);
}

// Repeated squaring of reachability is another method than strongly connected components.
TEST_CASE("on random waits a cycle is found exactly where a task can reach itself") {
  CHECK(rc::check("cycle iff reachable", [] {
    const auto tasks = *rc::gen::inRange<std::size_t>(1, 15);
    const auto count = *rc::gen::inRange<std::size_t>(0, 20);
    const std::uint64_t first = *rc::gen::arbitrary<std::uint32_t>();
    for (std::uint64_t seed = first; seed < first + 20; ++seed) {
      RandomStream random(seed, "waits");
      const auto any_task = [&] {
        return static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(tasks) - 1));
      };
      std::vector<std::array<std::size_t, 2>> pairs;
      std::vector<std::vector<char>> reaches(tasks, std::vector<char>(tasks, 0));
      for (std::size_t k = 0; k < count; ++k) {
        pairs.push_back({any_task(), any_task()});
        reaches[pairs.back()[0]][pairs.back()[1]] = 1;
      }
      for (std::size_t via = 0; via < tasks; ++via) {
        for (std::size_t a = 0; a < tasks; ++a) {
          for (std::size_t b = 0; b < tasks; ++b) {
            if (reaches[a][via] != 0 && reaches[via][b] != 0) {
              reaches[a][b] = 1;
            }
          }
        }
      }
      bool cyclic = false;
      for (std::size_t t = 0; t < tasks; ++t) {
        cyclic = cyclic || reaches[t][t] != 0;
      }
      const auto waits = waits_of(pairs);
      const auto cycle = find_cycle(tasks, waits);
      RC_ASSERT(cycle.empty() != cyclic);
      if (cyclic) {
        RC_ASSERT(is_cycle(cycle, waits));
        RC_ASSERT(cycle.size() <= tasks);
      }
    }
  }));
}

TEST_CASE("a deadlock message goes once around the cycle with its reasons") {
  GraphBuilder g(1);
  const PairId a = g.add_pair(RankId(0), Passes::Fused, fused(1, 1));
  const std::vector<WaitEdge> waits = {{g.f(a), g.b(a), "first reason"},
                                       {g.b(a), g.f(a), "second reason"}};
  const Error error = test::error_of([&] { fail_deadlock(g.graph, waits); });
  CHECK(error.kind() == ErrorKind::Input);
  const std::string f = describe(g.graph, g.f(a));
  const std::string b = describe(g.graph, g.b(a));
  CHECK(error.message().find(f + " waits for " + b + " (first reason)") != std::string::npos);
  CHECK(error.message().find(b + " waits for " + f + " (second reason)") != std::string::npos);
}

TEST_CASE("the message of a very long cycle stays short and says how much is left out") {
  GraphBuilder g(1);
  std::vector<std::array<std::size_t, 2>> ring;
  constexpr std::size_t kLength = 1000;
  for (std::size_t i = 0; i < kLength; ++i) {
    g.add_pair(RankId(0), Passes::ForwardOnly, fused(1, 1));
    ring.push_back({i, (i + 1) % kLength});
  }
  const auto waits = waits_of(ring);
  CHECK(find_cycle(kLength, waits).size() == kLength);
  const Error error = test::error_of([&] { fail_deadlock(g.graph, waits); });
  CHECK(error.message().size() < 3000);
  CHECK(error.message().find("1000") != std::string::npos);
}

TEST_CASE("no cycle where one must be is a defect of the program, not of the input") {
  const GraphBuilder g(1);
  CHECK(test::error_of([&] { fail_deadlock(g.graph, {}); }).kind() == ErrorKind::Internal);
}

TEST_CASE("a schedule waits for results, and for the step before on each cell") {
  GraphBuilder g(2);
  const RankId wide = g.add_rank({CellId(0), CellId(1)});
  const PairId a = g.add_pair(RankId(0), Passes::ForwardOnly, fused(1, 1));
  const PairId b = g.add_pair(RankId(1), Passes::ForwardOnly, fused(1, 1));
  const PairId both = g.add_pair(wide, Passes::ForwardOnly, fused(1, 1));
  g.add_edge(g.f(a), g.f(b));
  const auto waits =
      schedule_waits(g.graph, g.schedule({{g.f(a), g.f(both)}, {g.f(b), g.f(both)}}));
  const auto has = [&](TaskId task, TaskId needs) {
    return std::ranges::any_of(
        waits, [&](const WaitEdge& wait) { return wait.task == task && wait.needs == needs; });
  };
  CHECK(waits.size() == 3);
  CHECK(has(g.f(b), g.f(a)));
  CHECK(has(g.f(both), g.f(a)));
  CHECK(has(g.f(both), g.f(b)));
}

}  // namespace
}  // namespace dipsim
