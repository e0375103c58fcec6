// SPDX-License-Identifier: Apache-2.0
// ZeRO-3: closed forms of a step whose weights are gathered one pass ahead.
#include "models/weight_traffic.hpp"
#include "schedulers/registry.hpp"
#include "sim/engine/engine.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

/// A chain of layers of 10 ns forward and 20 ns backward per microbatch of one token.
class Sharded : public test::FakeCosts {
 public:
  Duration gather{0};
  Duration scatter{0};
  bool drops = true;

  explicit Sharded(int replicas = 1)
      : FakeCosts({{.name = "m", .layers = kLayers, .f = 10, .i = 10, .w = 10, .inputs = {}}}, 1,
                  replicas) {}

  static constexpr int kLayers = 4;

  [[nodiscard]] TransferCost weight_gather(const Chunk& /*chunk*/) const override {
    return {.occupied = gather, .latency = Duration{0}, .bytes = Bytes{1000}};
  }

  [[nodiscard]] TransferCost gradient_scatter(const Chunk& /*chunk*/) const override {
    return {.occupied = scatter, .latency = Duration{0}, .bytes = Bytes{1000}};
  }

  [[nodiscard]] bool reshards() const override { return drops; }
};

struct Run {
  TaskGraph graph;
  Timeline timeline;
};

Run run(const Sharded& costs, std::initializer_list<std::int32_t> tokens) {
  std::vector<test::FakeMicrobatch> microbatches;
  for (const std::int32_t count : tokens) {
    microbatches.push_back({{count}});
  }
  const Batch batch = test::fake_batch(microbatches, costs.problem().replicas);
  const auto planner = find_schedule("fsdp").make({});
  const Placement placement = planner->place(costs, batch);
  Run out{.graph = costs.lower(planner->slice(placement, batch, costs), batch), .timeline = {}};
  out.timeline = simulate(out.graph, planner->order(out.graph));
  return out;
}

constexpr Duration kCompute{Sharded::kLayers * 30};

}  // namespace

TEST_CASE("gathers shorter than the passes cost the first one only") {
  Sharded costs;
  costs.gather = Duration{7};
  CHECK(run(costs, {1}).timeline.iteration == Duration{7} + kCompute);
}

TEST_CASE("gathers longer than the passes set the pace") {
  Sharded costs;
  costs.gather = Duration{100};
  // 2L gathers one after the other, then the last backward of 20.
  CHECK(run(costs, {1}).timeline.iteration == Duration{2 * Sharded::kLayers * 100 + 20});
}

TEST_CASE("the scatter of the last backward comes behind it") {
  Sharded costs;
  costs.gather = Duration{5};
  costs.scatter = Duration{9};
  // Both fit beside a backward of 20.
  CHECK(run(costs, {1}).timeline.iteration == Duration{5} + kCompute + Duration{9});
}

TEST_CASE("weights that stay gathered are gathered once per microbatch") {
  Sharded costs;
  costs.gather = Duration{100};
  costs.drops = false;
  const Run once = run(costs, {1});
  CHECK(std::ranges::count(once.graph.tasks, Op::Gather, &Task::op) == Sharded::kLayers);
  CHECK(once.timeline.iteration == Duration{Sharded::kLayers * 100 + 10 + Sharded::kLayers * 20});
}

TEST_CASE("replicas gather together and wait for the slowest at every layer") {
  Sharded costs(2);
  costs.gather = Duration{1};
  // Replica 0 has 1 token, replica 1 has 3: the heavy one sets the pace.
  const Run uneven = run(costs, {1, 3});
  CHECK(std::ranges::count(uneven.graph.tasks, Op::Gather, &Task::op) == 2 * Sharded::kLayers);
  CHECK(uneven.timeline.iteration == Duration{1} + 3 * kCompute);
}

TEST_CASE("a pass holds its weights and the next ones, a backward also its gradients") {
  // Layer l gathers 100 (l + 1) bytes and scatters 10 (l + 1); every pass needs 1 byte of its own.
  class Growing final : public Sharded {
   public:
    [[nodiscard]] TransferCost weight_gather(const Chunk& chunk) const override {
      return {.occupied = Duration{1}, .bytes = Bytes{100 * (chunk.layers.front().first + 1)}};
    }

    [[nodiscard]] TransferCost gradient_scatter(const Chunk& chunk) const override {
      return {.occupied = Duration{1}, .bytes = Bytes{10 * (chunk.layers.front().first + 1)}};
    }
  };

  const Run one = run(Growing(), {1});
  std::vector<std::int64_t> forward(Sharded::kLayers);
  std::vector<std::int64_t> backward(Sharded::kLayers);
  for (const Task& task : one.graph.tasks) {
    if (is_pass(task.op)) {
      (task.op == Op::F ? forward : backward)[task.chunk.row()] = task.transient.count - 1;
    }
  }
  CHECK(forward == std::vector<std::int64_t>{100 + 200, 200 + 300, 300 + 400, 400 + 400});
  CHECK(backward == std::vector<std::int64_t>{100 + 10 + 20, 200 + 100 + 20 + 30,
                                              300 + 200 + 30 + 40, 400 + 300 + 40});
}

TEST_CASE("replicas with different numbers of microbatches can't gather together") {
  Sharded costs(2);
  costs.gather = Duration{1};
  Batch batch = test::fake_batch({{{1}}, {{1}}, {{1}}});
  batch.replica = {0, 0, 1};
  const auto planner = find_schedule("fsdp").make({});
  const Placement placement = planner->place(costs, batch);
  const Error error =
      test::error_of([&] { costs.lower(planner->slice(placement, batch, costs), batch); });
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(std::string(error.what()).find("replica 1 has 8 passes, replica 0 has 16") !=
        std::string::npos);
}
