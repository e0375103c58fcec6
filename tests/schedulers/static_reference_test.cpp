// SPDX-License-Identifier: Apache-2.0
// Cases whose answers other simulators agree on: ASTRA-sim, SimGrid, a public Python emulator and
// the scheduler of the zero-bubble authors. F = 1, full backward = 2 (split: I = W = 1) per chunk.
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

namespace {

using namespace dipsim;

std::int64_t count_of(const TaskGraph& graph, bool transfers) {
  return std::ranges::count_if(graph.tasks, [transfers](const Task& task) {
    return transfers ? task.op == Op::Transfer : is_pass(task.op);
  });
}

struct Reference {
  const char* schedule;
  int p, m, v;
  std::int64_t passes, transfers, makespan;
};

TEST_CASE("1F1B and interleaved reference cases without transfer time") {
  for (const Reference& want : {Reference{"1f1b", 8, 64, 1, 1024, 896, 213},
                                Reference{"1f1b", 32, 256, 1, 16384, 15872, 861},
                                Reference{"interleaved", 8, 64, 4, 4096, 3968, 789},
                                Reference{"interleaved", 32, 256, 4, 65536, 65024, 3165}}) {
    const auto plan = test::plan(want.schedule, test::pipeline(want.p, want.m, want.v, 1, 1, 1));
    CAPTURE(want.makespan);
    CHECK(count_of(plan.graph, false) == want.passes);
    CHECK(count_of(plan.graph, true) == want.transfers);
    CHECK(test::makespan(plan) == want.makespan);
    CHECK(test::rendezvous_makespan(plan) == want.makespan);
  }
}

TEST_CASE("a transfer time of 1 costs what the reference says, eager and rendezvous") {
  SyntheticSpec plain = test::pipeline(8, 64, 1, 1, 1, 1);
  plain.p2p_occupied = Duration{1};
  const auto one_f_one_b = test::plan("1f1b", plain);
  CHECK(test::makespan(one_f_one_b) == 337);
  CHECK(test::rendezvous_makespan(one_f_one_b) == 352);

  SyntheticSpec chunked = test::pipeline(8, 64, 4, 1, 1, 1);
  chunked.p2p_occupied = Duration{1};
  const auto interleaved = test::plan("interleaved", chunked);
  CHECK(test::makespan(interleaved) == 851);
  CHECK(test::rendezvous_makespan(interleaved) == 1309);
}

TEST_CASE("ZB-H1 on 8 ranks reaches the optimum at equal memory: 79 and 199") {
  CHECK(test::makespan(test::plan("zb-h1", test::pipeline(8, 24, 1, 1, 1, 1))) == 79);
  CHECK(test::makespan(test::plan("zb-h1", test::pipeline(8, 64, 1, 1, 1, 1))) == 199);
}

TEST_CASE("32 replicas of 1F1B p32 m64 run side by side") {
  SyntheticSpec spec = test::pipeline(32, 64, 1, 1, 1, 1);
  spec.replicas = 32;
  const auto plan = test::plan("1f1b", spec);
  CHECK(count_of(plan.graph, false) == 131072);
  CHECK(count_of(plan.graph, true) == 126976);
  CHECK(test::makespan(plan) == 285);
}

}  // namespace
