// SPDX-License-Identifier: Apache-2.0
#include "models/synthetic.hpp"

#include "sim/core/error.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace dipsim;
using namespace std::chrono_literals;

Work whole(int microbatch) {
  Work work;
  work.portions = {{MicrobatchId{microbatch}, 0, 0}};
  return work;
}

/// Message of the error that make_synthetic throws; "" when it throws none.
std::string refusal(const SyntheticSpec& spec) {
  try {
    make_synthetic(spec);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::Input);
    return error.what();
  }
  return "";
}

TEST_CASE("a synthetic pipeline has one layer per stage and replicas of its ranks") {
  SyntheticSpec spec;
  spec.ranks = 3;
  spec.chunks = 2;
  spec.replicas = 2;
  spec.microbatches = 5;
  const auto lowering = make_synthetic(spec);
  const Problem& problem = lowering->problem();
  REQUIRE(problem.modules.size() == 1);
  CHECK(problem.modules[0].layers == 6);
  CHECK(problem.modules[0].layer_parameters.size() == 6);
  CHECK(problem.ranks.size() == 6);
  CHECK(problem.depth() == 3);
  CHECK(problem.ranks[4].replica == 1);
  CHECK(problem.ranks[4].position == 1);
  CHECK(problem.cells.size() == 6);

  const Batch batch = synthetic_batch(spec);
  CHECK(batch.microbatches() == 10);
  CHECK(batch.replica[4] == 0);
  CHECK(batch.replica[5] == 1);
}

TEST_CASE("a layer costs what its stage says, and several add up") {
  SyntheticSpec spec;
  spec.ranks = 3;
  spec.forward = {1ms, 2ms, 4ms};
  spec.backward_input = {10us};
  spec.backward_weight = {7us, 8us, 9us};
  spec.activation = Bytes{100};
  spec.activation_for_weight = Bytes{30};
  const auto lowering = make_synthetic(spec);
  const Batch batch = synthetic_batch(spec);
  const std::array last = {LayerRange{ModuleId{0}, 1, 2}};
  const auto strategies = lowering->costs(last, whole(0), batch);
  REQUIRE(strategies.size() == 1);
  CHECK(strategies[0].mode == RecomputeMode::Keep);
  CHECK(strategies[0].f == 6ms);
  CHECK(strategies[0].i == 20us);
  CHECK(strategies[0].w == 17us);
  CHECK(strategies[0].b == 37us);
  CHECK(strategies[0].f_to_i == Bytes{200});
  CHECK(strategies[0].i_to_w == Bytes{60});
}

TEST_CASE("a work of several microbatches costs the time and memory of each") {
  SyntheticSpec spec;
  spec.ranks = 2;
  spec.microbatches = 3;
  const auto lowering = make_synthetic(spec);
  const LayerRange layer{.module = ModuleId{0}, .first = 0, .count = 1};
  Work three = whole(0);
  three.portions.push_back({MicrobatchId{1}, 0, 0});
  three.portions.push_back({MicrobatchId{2}, 0, 0});
  const Batch batch = synthetic_batch(spec);
  const Strategy one = lowering->costs({&layer, 1}, whole(0), batch).front();
  const Strategy all = lowering->costs({&layer, 1}, three, batch).front();
  REQUIRE(one.f.count() > 0);
  CHECK(all.f == 3 * one.f);
  CHECK(all.b == 3 * one.b);
  CHECK(all.f_to_i.count == 3 * one.f_to_i.count);
}

TEST_CASE("every rank has the memory limit of the pipeline") {
  SyntheticSpec spec;
  spec.replicas = 2;
  spec.memory_limit = Bytes{12345};
  for (const Rank& rank : make_synthetic(spec)->problem().ranks) {
    CHECK(rank.memory_limit == Bytes{12345});
  }
}

TEST_CASE("numbers out of range are refused by the name of their flag") {
  SyntheticSpec spec;
  spec.ranks = 0;
  CHECK(refusal(spec) == "--ranks: 0 is out of range; allowed: 1 to 10000000; nearest legal: 1");
  spec = {};
  spec.microbatches = -3;
  CHECK(refusal(spec).starts_with("--microbatches: -3 "));
  spec = {};
  spec.chunks = 0;
  CHECK(refusal(spec).starts_with("--chunks: 0 "));
  spec = {};
  spec.replicas = 0;
  CHECK(refusal(spec).starts_with("--replicas: 0 "));
  spec = {};
  spec.forward = {-1ns};
  CHECK(refusal(spec).starts_with("--forward-us: -1 ns "));
  spec = {};
  spec.backward_weight = {std::chrono::hours(25)};
  CHECK(refusal(spec).starts_with("--backward-weight-us: "));
  spec = {};
  spec.p2p_occupied = -5ns;
  CHECK(refusal(spec).starts_with("--p2p-us: "));
  spec = {};
  spec.activation = Bytes{-1};
  CHECK(refusal(spec).starts_with("--activation-mib: "));
  spec = {};
  spec.activation_for_weight = Bytes{-1};
  CHECK(refusal(spec).starts_with("--activation-for-weight-mib: "));
  spec = {};
  spec.memory_limit = Bytes{-1};
  CHECK(refusal(spec).starts_with("--memory-limit-mib: "));
}

TEST_CASE("too many passes are refused, the greatest number is not") {
  SyntheticSpec spec;
  spec.ranks = 1000;
  spec.microbatches = 10'000;
  CHECK(refusal(spec).empty());
  spec.microbatches = 10'001;
  CHECK(refusal(spec).find("forward passes are too many; allowed: 10000000") != std::string::npos);
  spec.ranks = spec.microbatches = spec.chunks = spec.replicas = 10'000'000;
  CHECK(refusal(spec).find("too many") != std::string::npos);
}

TEST_CASE("a list of times needs one value, or one per stage") {
  SyntheticSpec spec;
  spec.ranks = 4;
  spec.chunks = 2;
  spec.forward = std::vector<Duration>(8, 1ms);
  CHECK(refusal(spec).empty());
  spec.backward_input = {1ms, 2ms};
  CHECK(refusal(spec) ==
        "--backward-input-us: 2 values for 8 stages (ranks × chunks); allowed: 1 value or 8");
  spec.backward_input = {};
  CHECK(refusal(spec).starts_with("--backward-input-us: 0 values"));
}

TEST_CASE("times that overflow the clock together are refused") {
  SyntheticSpec spec;
  spec.ranks = 100;
  spec.microbatches = 1000;
  spec.forward = {std::chrono::hours(24)};
  CHECK(refusal(spec).find("all passes and transfers together take") != std::string::npos);
  spec.microbatches = 50;
  CHECK(refusal(spec).empty());
}

}  // namespace
