// SPDX-License-Identifier: Apache-2.0
#include "sim/core/error.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/schedulers/free_transfers.hpp"
#include "tests/schedulers/static_fixture.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace dipsim;
using test::FakeModule;
using test::FreeTransfers;

FakeModule vit(int layers, bool trained = true) {
  return {"vit", layers, 1, trained ? 1 : 0, trained ? 1 : 0, trained, {}};
}

Batch image_batch(std::size_t microbatches, int replicas = 1) {
  return test::fake_batch(
      std::vector<test::FakeMicrobatch>(microbatches, test::FakeMicrobatch{{1}, {1}}), replicas);
}

PlannerOptions with_chunks(int chunks) {
  PlannerOptions options;
  options.chunks_per_rank = chunks;
  return options;
}

// Chunks 0 and 1 are the encoder's, 2 and 3 the backbone's, each time on ranks 0 and 1.
TEST_CASE("optimus: encoder forwards, then 1f1b of the backbone, then encoder backwards") {
  const test::FakeCosts costs({vit(2), {"lm", 2, 2, 2, 2, true, {ModuleId{0}}}}, 2);
  CHECK(test::order_text(test::plan("optimus", costs, image_batch(3))) ==
        "0F0 0F1 0F2 2F0 2F1 2B0 2F2 2B1 2B2 0B0 0B1 0B2\n"
        "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1B0 1B1 1B2\n");
}

// Chunks 2 and 4 are on rank 0, 3 and 5 on rank 1.
TEST_CASE("optimus: a backbone of several chunks per rank is interleaved") {
  const test::FakeCosts costs({vit(2), {"lm", 4, 2, 2, 2, true, {ModuleId{0}}}}, 2);
  CHECK(test::order_text(test::plan("optimus", costs, image_batch(2), with_chunks(2))) ==
        "0F0 0F1 2F0 2F1 4F0 4F1 4B0 4B1 2B0 2B1 0B0 0B1\n"
        "1F0 1F1 3F0 3F1 5F0 5B0 5F1 5B1 3B0 3B1 1B0 1B1\n");
  CHECK_THROWS_WITH_AS((void)test::plan("optimus", costs, image_batch(3), with_chunks(2)),
                       doctest::Contains("3 per replica with schedule optimus on 2 ranks"), Error);
}

TEST_CASE("optimus: several encoders go one after the other, their backwards the other way round") {
  const test::FakeCosts costs({vit(1),
                               {"projector", 1, 1, 1, 1, true, {ModuleId{0}}},
                               {"lm", 1, 1, 1, 1, true, {ModuleId{1}}}},
                              1);
  const Batch batch = test::fake_batch({{{1}, {1}, {1}}, {{1}, {1}, {1}}});
  CHECK(test::order_text(test::plan("optimus", costs, batch)) ==
        "0F0 0F1 1F0 1F1 2F0 2B0 2F1 2B1 1B0 1B1 0B0 0B1\n");
}

TEST_CASE(
    "optimus: a frozen encoder has no backward, a microbatch without images no encoder pass") {
  const test::FakeCosts costs({vit(2, false), {"lm", 2, 2, 2, 2, true, {ModuleId{0}}}}, 2);
  const Batch batch = test::fake_batch({{{}, {1}}, {{1, 1}, {1}}});
  CHECK(test::order_text(test::plan("optimus", costs, batch)) ==
        "0F1 2F0 2F1 2B0 2B1\n"
        "1F1 3F0 3B0 3F1 3B1\n");
}

TEST_CASE("optimus: replicas are scheduled apart, each on its own microbatches") {
  const test::FakeCosts costs({vit(2), {"lm", 2, 2, 2, 2, true, {ModuleId{0}}}}, 2, 2);
  CHECK(test::order_text(test::plan("optimus", costs, image_batch(4, 2))) ==
        "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
        "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n"
        "4F2 4F3 6F2 6F3 6B2 6B3 4B2 4B3\n"
        "5F2 5F3 7F2 7B2 7F3 7B3 5B2 5B3\n");
}

// The backbone starts on rank 0 when that rank has run its m encoder forwards, and its first
// forward travels no faster than the last encoder forward does; so the encoder costs m passes and
// no bubble of its own. Backwards mirror it.
TEST_CASE("optimus: encoder passes add their time but no bubble, if no longer than backbone ones") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 6);
    const int v = *rc::gen::inRange(1, 4);
    const int m = p * *rc::gen::inRange(1, 4);
    const int f = *rc::gen::inRange(1, 40);  // of a backbone chunk; i and w the same way
    const int i = *rc::gen::inRange(0, 40);
    const int w = *rc::gen::inRange(0, 40);
    const int encoder_f = *rc::gen::inRange(0, f + 1);
    const int encoder_b = *rc::gen::inRange(0, i + w + 1);
    const FreeTransfers costs({{"vit", p, encoder_f, encoder_b, 0, true, {}},
                               {"lm", p * v, f, i, w, true, {ModuleId{0}}}},
                              p);
    const auto plan =
        test::plan("optimus", costs, image_batch(static_cast<std::size_t>(m)), with_chunks(v));
    RC_ASSERT(test::makespan(plan) == std::int64_t{m} * (encoder_f + encoder_b) +
                                          std::int64_t{m * v + p - 1} * (f + i + w));
  }));
}

TEST_CASE("optimus: on every rank encoder forwards come first and encoder backwards last") {
  CHECK(rc::check([] {
    const int p = *rc::gen::inRange(1, 5);
    const int replicas = *rc::gen::inRange(1, 3);
    const auto module = [&](const char* name, std::vector<ModuleId> inputs) {
      return FakeModule{name,
                        p + *rc::gen::inRange(0, 5),
                        *rc::gen::inRange(0, 9),
                        *rc::gen::inRange(0, 9),
                        *rc::gen::inRange(0, 9),
                        true,
                        std::move(inputs)};
    };
    const test::FakeCosts costs(
        {module("vit", {}), module("audio", {}), module("lm", {ModuleId{0}, ModuleId{1}})}, p,
        replicas);
    std::vector<test::FakeMicrobatch> microbatches;
    microbatches.reserve(static_cast<std::size_t>(3 * replicas));
    for (int m = 0; m < 3 * replicas; ++m) {
      microbatches.push_back({std::vector(*rc::gen::inRange<std::size_t>(0, 3), 2),
                              std::vector(*rc::gen::inRange<std::size_t>(0, 3), 3),
                              {5}});
    }
    const auto plan = test::plan("optimus", costs, test::fake_batch(microbatches, replicas));
    (void)test::timeline(plan);  // runs to its end: no deadlock
    for (std::size_t cell = 0; cell < plan.schedule.compute.size(); ++cell) {
      std::vector<int> phases;
      for (const Slot& slot : plan.schedule.compute[cell]) {
        const Task& task = plan.graph.task(slot.task);
        const bool backbone = plan.graph.works[task.work.row()].module == ModuleId{2};
        phases.push_back(backbone ? 1 : task.op == Op::F ? 0 : 2);
      }
      RC_ASSERT(std::ranges::is_sorted(phases));
      RC_ASSERT(std::ranges::count(phases, 0) == std::ranges::count(phases, 2));
    }
  }));
}

TEST_CASE("optimus: a rank holds the encoder activations of all microbatches at once") {
  const int m = 6;
  const test::FakeCosts costs({vit(2), {"lm", 2, 2, 2, 2, true, {ModuleId{0}}}}, 2);
  const auto plan = test::plan("optimus", costs, image_batch(m));
  CHECK(test::in_flight(plan) == std::vector<int>{m + 2, m + 1});
}

TEST_CASE("optimus refuses a model without encoder, with two backbones or with too few layers") {
  const auto place = [](const std::vector<FakeModule>& modules, int chunks) {
    const test::FakeCosts costs(modules, 2);
    const test::FakeMicrobatch microbatch(modules.size(), {1});
    (void)find_schedule("optimus")
        .make(with_chunks(chunks))
        ->place(costs, test::fake_batch({microbatch}));
  };
  CHECK_THROWS_WITH_AS(place({{"lm", 4, 1, 1, 1, true, {}}}, 1),
                       "schedule optimus: the model has no encoder: its one module is lm; use "
                       "megatron, which is optimus without encoders",
                       Error);
  CHECK_THROWS_WITH_AS(place({vit(2),
                              {"lm", 4, 1, 1, 1, true, {ModuleId{0}}},
                              {"dit", 4, 1, 1, 1, true, {ModuleId{0}}}},
                             1),
                       doctest::Contains("modules lm and dit feed no other one"), Error);
  CHECK_THROWS_WITH_AS(place({vit(1), {"lm", 4, 1, 1, 1, true, {ModuleId{0}}}}, 1),
                       doctest::Contains("module vit: 1 layers can't be spread over 2 ranks"),
                       Error);
  CHECK_THROWS_WITH_AS(place({vit(2), {"lm", 4, 1, 1, 1, true, {ModuleId{0}}}}, 3),
                       doctest::Contains("allowed: 1 to 2"), Error);
  CHECK_NOTHROW(place({vit(2), {"lm", 4, 1, 1, 1, true, {ModuleId{0}}}}, 2));
}

}  // namespace
