// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/order_builder.hpp"

#include "sim/core/error.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace dipsim;

/// p ranks with one stage each, or one rank with all stages; every pass takes 10 ns.
PipelineInstance pipeline(int ranks, int chunks, int microbatches, const PairCost& cost) {
  PipelineInstance instance;
  instance.shape = {.ranks = ranks, .microbatches = microbatches, .chunks = chunks};
  instance.backward_op = Op::I;
  for (int stage = 0; stage < ranks * chunks; ++stage) {
    instance.stages.push_back(
        {.rank = stage % ranks, .chunk = stage / ranks, .has_backward = true, .has_weight = true});
  }
  instance.costs.assign(instance.stages.size() * static_cast<std::size_t>(microbatches), cost);
  instance.room.assign(static_cast<std::size_t>(ranks), Bytes{100});
  for (int rank = 0; rank < ranks; ++rank) {
    instance.ranks.emplace_back(7 + rank);
  }
  return instance;
}

PairCost cost() {
  return {.forward = Duration{10},
          .backward = Duration{10},
          .weight = Duration{10},
          .held = Bytes{10},
          .kept = Bytes{4},
          .sent = {.occupied = Duration{25}, .latency = Duration{3}},
          .returned = {.occupied = Duration{1}, .latency = Duration{1}}};
}

TEST_CASE("order builder: messages queue on their link, then travel") {
  const PipelineInstance instance = pipeline(2, 1, 3, cost());
  OrderBuilder order(instance, instance.room);
  CHECK(order.forward_arrival(0) == Duration{0});
  CHECK(order.forward_arrival(1) == OrderBuilder::kNever);
  order.place_forward(0);
  order.place_forward(0);
  CHECK(order.forward_arrival(1) == Duration{10 + 25 + 3});
  order.place_forward(1);
  CHECK(order.forward_arrival(1) == Duration{10 + 2 * 25 + 3});
  CHECK(order.now(0) == Duration{20});
  CHECK(order.now(1) == Duration{48});
  CHECK(order.makespan() == Duration{48});
}

TEST_CASE("order builder: a backward waits for its own forward, and for the gradient from below") {
  const PipelineInstance instance = pipeline(2, 1, 2, cost());
  OrderBuilder order(instance, instance.room);
  CHECK(order.backward_arrival(1) == OrderBuilder::kNever);
  order.place_forward(0);
  CHECK(order.backward_arrival(0) == OrderBuilder::kNever);
  order.place_forward(1);
  CHECK(order.backward_arrival(1) == Duration{0});
  order.place_backward(1);
  CHECK(order.backward_arrival(0) == Duration{58 + 2});
  CHECK(order.backwards(1) == 1);
  order.place_backward(0);
  CHECK(order.idle(0) == Duration{50});
  CHECK(order.idle(1) == Duration{0});  // before its first pass a rank does not idle
  CHECK(order.slack(1) == Duration{50});
  CHECK(order.slack(0) == Duration{0});
}

TEST_CASE("order builder: a stage without backward has finished with the forward, and passes on") {
  PipelineInstance instance = pipeline(3, 1, 2, cost());
  instance.stages[1].has_backward = instance.stages[1].has_weight = false;
  for (int m = 0; m < 2; ++m) {
    PairCost& frozen = instance.costs[instance.row(1, m)];
    frozen.held = frozen.kept = Bytes{};
    frozen.backward = frozen.weight = Duration{0};
  }
  OrderBuilder order(instance, instance.room);
  order.place_forward(0);
  order.place_forward(1);
  CHECK(order.backwards(1) == 1);
  order.place_forward(2);
  order.place_backward(2);
  CHECK(order.backward_arrival(0) == order.now(2) + Duration{2});
  CHECK(order.backward_arrival(1) == OrderBuilder::kNever);
}

TEST_CASE("order builder: as many W's are placed as the next pass needs, the oldest first") {
  const PipelineInstance instance = pipeline(1, 1, 4, cost());
  const std::vector<Bytes> limits = {Bytes{17}};
  OrderBuilder order(instance, limits);
  for (int m = 0; m < 2; ++m) {
    order.make_room_for_forward(0);
    order.place_forward(0);
    CHECK_FALSE(order.admits_forwards(0));  // two microbatches need 20
    order.make_room_for_backward(0);
    order.place_backward(0);
  }
  CHECK(order.weights_before_forward(0) == Duration{10});  // 4 + 4 + 10 is 1 too much
  CHECK(order.admits_forwards(0));
  order.make_room_for_forward(0);
  CHECK(order.steps().front() == std::vector<Step>{{.op = Op::F, .microbatch = 0},
                                                   {.op = Op::I, .microbatch = 0},
                                                   {.op = Op::F, .microbatch = 1},
                                                   {.op = Op::I, .microbatch = 1},
                                                   {.op = Op::W, .microbatch = 0}});
}

TEST_CASE("order builder: a wait is filled with the W's that end in time") {
  const PipelineInstance instance = pipeline(1, 1, 4, cost());
  OrderBuilder order(instance, instance.room);
  for (int m = 0; m < 3; ++m) {
    order.place_forward(0);
    order.place_backward(0);
  }
  order.fill_wait(0, Duration{60 + 29}, OrderBuilder::kNever);
  CHECK(order.now(0) == Duration{80});
  CHECK(order.weight_waits(0));
  order.place_weights(0);
  CHECK_FALSE(order.weight_waits(0));
}

TEST_CASE("order builder: no forward that would leave an older microbatch without room") {
  // Both stages on one rank, 10 bytes each: a microbatch needs 20 in the end.
  const PipelineInstance instance = pipeline(1, 2, 3, cost());
  const std::vector<Bytes> limits = {Bytes{30}};
  OrderBuilder order(instance, limits);
  CHECK(order.admits_forwards(0, 2));
  CHECK_FALSE(order.admits_forwards(0, 3));  // 30 bytes fit, but then nothing can go on
  order.place_forward(0);
  order.place_forward(0);
  CHECK_FALSE(order.admits_forwards(0));
  CHECK(order.admits_forwards(1));
  order.place_forward(1);
  CHECK_FALSE(order.admits_forwards(1));  // the oldest still holds 20
  CHECK(order.admits_backward(1));
}

TEST_CASE("order builder: what a microbatch needs while a pass runs counts for those that wait") {
  PipelineInstance instance = pipeline(1, 1, 2, cost());
  for (PairCost& of_pair : instance.costs) {
    of_pair.during_backward = Bytes{5};
    of_pair.kept = Bytes{18};  // more than before I, as with recomputation
    of_pair.during_weight = Bytes{1};
  }
  std::vector<Bytes> limits = {Bytes{29}};  // I and W of the first beside the second: 18 + 1 + 10
  OrderBuilder roomy(instance, limits);
  CHECK(roomy.admits_forwards(0, 2));
  limits = {Bytes{28}};
  OrderBuilder tight(instance, limits);
  CHECK(tight.admits_forwards(0));
  CHECK_FALSE(tight.admits_forwards(0, 2));
  limits = {Bytes{18}};
  CHECK_THROWS_WITH_AS(OrderBuilder(instance, limits),
                       doctest::Contains("microbatch 0 alone needs 19 bytes"), Error);
}

}  // namespace
