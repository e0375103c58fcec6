// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/partition.hpp"
#include "schedulers/dip/planner.hpp"
#include "sim/core/error.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

using dip::choose_partition;
using dip::ModulePlan;
using dip::PartitionPlan;
using dip::place_modules;
using dip::slice_batch;

/// A layer takes `fixed` + `per_token` × tokens for F, and twice that for B.
struct LayerCost {
  std::int64_t fixed = 0;
  std::int64_t per_token = 0;
};

constexpr LayerCost layer(std::int64_t fixed, std::int64_t per_token) {
  return {.fixed = fixed, .per_token = per_token};
}

/// As many modules as there are pairs (B, K).
std::vector<ModulePlan> plans(const std::vector<std::pair<int, int>>& choices) {
  std::vector<ModulePlan> plans(choices.size());
  for (std::size_t m = 0; m < choices.size(); ++m) {
    plans[m] = {.slice_instances = choices[m].first, .segments = choices[m].second};
  }
  return plans;
}

/// Costs from known curves; 10 bytes of weights per layer.
class FakeLowering final : public Lowering {
 public:
  FakeLowering(int ranks, int replicas, std::vector<std::pair<int, LayerCost>> modules) {
    problem_.replicas = replicas;
    for (std::size_t m = 0; m < modules.size(); ++m) {
      ModuleShape shape;
      shape.name = "module" + std::to_string(m);
      shape.layers = modules[m].first;
      shape.layer_parameters.assign(static_cast<std::size_t>(shape.layers), 1.0);
      problem_.modules.push_back(shape);
      costs_.push_back(modules[m].second);
    }
    for (int r = 0; r < ranks * replicas; ++r) {
      Rank rank;
      rank.replica = r / ranks;
      rank.position = r % ranks;
      rank.cells = {CellId(r)};
      problem_.ranks.push_back(rank);
      problem_.cells.add_row();
    }
  }

  [[nodiscard]] const Problem& problem() const override { return problem_; }

  [[nodiscard]] std::vector<Strategy> costs(std::span<const LayerRange> layers, const Work& work,
                                            const Batch& batch) const override {
    std::int64_t tokens = 0;
    for (const Portion& portion : work.portions) {
      const auto all = batch.of(portion.microbatch, work.module);
      for (const Instance& instance : all.subspan(static_cast<std::size_t>(portion.first),
                                                  static_cast<std::size_t>(portion.count))) {
        tokens += instance.tokens;
      }
    }
    const LayerCost& cost = costs_[work.module.row()];
    Strategy strategy;
    for (const LayerRange& range : layers) {
      strategy.f += Duration{range.count * (cost.fixed + cost.per_token * tokens)};
    }
    strategy.b = 2 * strategy.f;
    return {strategy};
  }

  [[nodiscard]] ChunkMemory memory(std::span<const LayerRange> layers) const override {
    std::int64_t count = 0;
    for (const LayerRange& range : layers) {
      count += range.count;
    }
    return {.weights = Bytes{10 * count},
            .gradients = Bytes{20 * count},
            .optimizer = Bytes{30 * count}};
  }

  [[nodiscard]] TaskGraph lower(const Draft& /*draft*/, const Batch& /*batch*/) const override {
    return {};
  }

 private:
  Problem problem_;
  std::vector<LayerCost> costs_;
};

/// tokens[microbatch][module]: the instances by their tokens.
Batch batch_of(const std::vector<std::vector<std::vector<int>>>& tokens) {
  Batch batch;
  batch.modules = tokens.front().size();
  for (const auto& microbatch : tokens) {
    batch.replica.push_back(0);
    for (const auto& instances : microbatch) {
      batch.instances.add_row();
      for (const int each : instances) {
        batch.instances.push_back({.tokens = each, .output_tokens = each});
      }
    }
  }
  return batch;
}

const std::string& note(const std::vector<Note>& notes, const std::string& name) {
  const auto found = std::ranges::find(notes, name, &Note::name);
  REQUIRE(found != notes.end());
  return found->text;
}

/// Images of 100 tokens: n of them take 100 + 100 n per layer, so their throughput n / (n + 1)
/// reaches 8/9, 12/13 and 32/33 of the limit: 91.7 %, 95.2 % and 100 % of the best tried.
constexpr LayerCost kImageLayer = layer(100, 1);

}  // namespace

TEST_CASE("dip partition: the slice is the smallest size with 95 % of the best throughput") {
  const FakeLowering lowering(4, 1, {{64, kImageLayer}, {32, layer(0, 1)}});
  const Batch batch = batch_of({{std::vector<int>(10, 100), {8192}}});
  DipOptions options;
  CHECK(choose_partition(lowering, batch, options).modules[0].slice_instances == 12);
  SUBCASE("a finer list finds a smaller one, because the best is another too") {
    // n / (n + 1) >= 0.95 × 12 / 13 from n = 8 on: 0.889 against 0.877; at 7: 0.875.
    options.slice_sizes = {6, 7, 8, 9, 10, 11, 12};
    CHECK(choose_partition(lowering, batch, options).modules[0].slice_instances == 8);
  }
  SUBCASE("a stricter threshold asks for more") {
    options.efficiency = 1.0;
    CHECK(choose_partition(lowering, batch, options).modules[0].slice_instances == 32);
  }
  SUBCASE("the numbers are in the notes") {
    const std::string text = note(choose_partition(lowering, batch, options).notes, "B module0");
    CHECK(text.find("12: ") == 0);
    CHECK(text.find("8: 91.7 %") != std::string::npos);
    CHECK(text.find("12: 95.2 %") != std::string::npos);
  }
}

TEST_CASE("dip partition: a module with one instance per microbatch is not sliced") {
  const FakeLowering lowering(4, 1, {{64, kImageLayer}, {32, layer(0, 1)}});
  const Batch batch = batch_of({{{100, 100}, {8192}}, {{100}, {4000}}});
  CHECK(choose_partition(lowering, batch, {}).modules[1].slice_instances == 1);
}

TEST_CASE("dip partition: the typical instance is the one of median size") {
  // 4 instances: the lower median has 200 tokens, so T of one LM-like module is 200 per layer.
  const FakeLowering lowering(1, 1, {{1, layer(0, 1)}, {10, layer(0, 1)}});
  const Batch batch = batch_of({{{100}, {50}}, {{900}, {50}}, {{200}, {50}}, {{300}, {50}}});
  const PartitionPlan plan = choose_partition(lowering, batch, {});
  // T = 3 × 200 and 3 × 50 × 10 = 1500: floor(1500 / 600) = 2 for the second module.
  CHECK(plan.modules == plans({{1, 1}, {1, 2}}));
}

TEST_CASE("dip partition: segments are the whole multiple of the fastest module") {
  // T per slice: module0 of 12 images 64 × 1300 × 3; module1 32 × t × 3.
  const Batch batch = batch_of({{std::vector<int>(10, 100), {1}}});
  const auto segments = [&](int first_layers, std::int64_t backbone_layer, int ranks) {
    const FakeLowering lowering(ranks, 1,
                                {{first_layers, kImageLayer}, {32, layer(backbone_layer, 0)}});
    const PartitionPlan plan = choose_partition(lowering, batch, {});
    return std::pair(plan.modules[0].segments, plan.modules[1].segments);
  };
  // 64 × 1300 = 83,200 against 32 × 1300 = 41,600: exactly 2.
  CHECK(segments(64, 1300, 4) == std::pair(2, 1));
  CHECK(segments(64, 1301, 4) == std::pair(1, 1));  // just below 2
  CHECK(segments(64, 7800, 4) == std::pair(1, 3));  // 249,600 over 83,200
  CHECK(segments(64, 100, 4) == std::pair(16, 1));  // 26, but 64 layers on 4 ranks make 16
  CHECK(segments(64, 100, 32) == std::pair(2, 1));
}

TEST_CASE("dip partition: max_segments and the switch-off limit the segments") {
  const FakeLowering lowering(4, 1, {{64, kImageLayer}, {32, layer(100, 0)}});
  const Batch batch = batch_of({{std::vector<int>(10, 100), {1}}});
  DipOptions options;
  options.max_segments = 3;
  CHECK(choose_partition(lowering, batch, options).modules[0] == plans({{12, 3}})[0]);
  options.partitioner = false;
  CHECK(choose_partition(lowering, batch, options).modules == plans({{0, 1}, {0, 1}}));
}

TEST_CASE("dip partition: a module without instances stays whole and sets no measure") {
  const FakeLowering lowering(4, 1, {{64, layer(0, 0)}, {32, layer(100, 0)}, {32, layer(200, 0)}});
  const Batch batch = batch_of({{{}, {1}, {1}}});
  CHECK(choose_partition(lowering, batch, {}).modules == plans({{0, 1}, {1, 1}, {1, 2}}));
}

TEST_CASE("dip partition: a module with fewer layers than ranks is an input error") {
  const FakeLowering lowering(4, 1, {{3, kImageLayer}, {32, layer(100, 0)}});
  const Batch batch = batch_of({{{1}, {1}}});
  try {
    static_cast<void>(choose_partition(lowering, batch, {}));
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::Input);
    CHECK(error.where() == "module module0");
    CHECK(error.message().find("use at most 3 ranks") != std::string::npos);
  }
  CHECK_THROWS_AS(
      static_cast<void>(place_modules(lowering, {.modules = plans({{1, 1}, {1, 1}}), .notes = {}})),
      Error);
}

TEST_CASE("dip partition: layers are spread evenly, remainder first, round the ranks") {
  const FakeLowering lowering(4, 2, {{63, kImageLayer}, {32, layer(0, 1)}});
  const Placement placement =
      place_modules(lowering, {.modules = plans({{12, 2}, {1, 1}}), .notes = {}});
  REQUIRE(placement.chunks.size() == 2 * (8 + 4));
  CHECK(placement.slice_instances == std::vector<int>{12, 1});
  int next = 0;
  for (int c = 0; c < 8; ++c) {
    const Chunk& chunk = placement.chunks[static_cast<std::size_t>(c)];
    REQUIRE(chunk.layers.size() == 1);
    CHECK(chunk.layers[0] == LayerRange{.module = ModuleId{0},
                                        .first = next,
                                        .count = c < 7 ? 8 : 7});  // 63 = 8 × 7 + 7
    CHECK(chunk.rank == RankId{c % 4});
    CHECK(chunk.weights == 10 * Bytes{chunk.layers[0].count});
    CHECK(chunk.gradients == 20 * Bytes{chunk.layers[0].count});
    CHECK(chunk.optimizer == 30 * Bytes{chunk.layers[0].count});
    next += chunk.layers[0].count;
  }
  CHECK(next == 63);
  for (std::size_t c = 0; c < 12; ++c) {  // the second replica: same weights, ranks 4 to 7
    CHECK(placement.chunks[12 + c].layers == placement.chunks[c].layers);
    CHECK(placement.chunks[12 + c].weight_set == placement.chunks[c].weight_set);
    CHECK(placement.chunks[12 + c].rank.value == placement.chunks[c].rank.value + 4);
  }
}

TEST_CASE("dip slice: N instances become ceil(N / B) slices of even size") {
  const auto sizes = [](int instances, int slice) {
    Placement placement;
    placement.slice_instances = {slice};
    const Draft draft =
        slice_batch(placement, batch_of({{std::vector<int>(static_cast<std::size_t>(instances))}}));
    std::vector<int> counts;
    int first = 0;
    for (const Work& work : draft.works) {
      REQUIRE(work.portions.size() == 1);
      CHECK(work.portions[0].first == first);
      first += work.portions[0].count;
      counts.push_back(work.portions[0].count);
    }
    CHECK(first == instances);
    return counts;
  };
  CHECK(sizes(0, 12) == std::vector<int>{});
  CHECK(sizes(1, 12) == std::vector<int>{1});
  CHECK(sizes(12, 12) == std::vector<int>{12});
  CHECK(sizes(13, 12) == std::vector<int>{7, 6});
  CHECK(sizes(25, 12) == std::vector<int>{9, 8, 8});
  CHECK(sizes(48, 12) == std::vector<int>{12, 12, 12, 12});
  CHECK(sizes(25, 0) == std::vector<int>{25});
  for (int n = 1; n <= 60; ++n) {
    for (int b = 1; b <= 13; ++b) {
      const std::vector<int> all = sizes(n, b);
      CHECK(all.size() == static_cast<std::size_t>((n + b - 1) / b));
      CHECK(all.front() - all.back() <= 1);
      CHECK(all.front() <= b);
    }
  }
}

TEST_CASE("dip slice: works name their replica, module and microbatch") {
  Batch batch = batch_of({{{1, 1, 1}, {5}}, {{}, {5}}});
  batch.replica = {0, 1};
  Placement placement;
  placement.slice_instances = {2, 1};
  const Draft draft = slice_batch(placement, batch);
  CHECK_FALSE(draft.split_backward);
  REQUIRE(draft.works.size() == 4);
  CHECK(draft.works[0].portions == std::vector<Portion>{{MicrobatchId{0}, 0, 2}});
  CHECK(draft.works[1].portions == std::vector<Portion>{{MicrobatchId{0}, 2, 1}});
  CHECK(draft.works[2].module == ModuleId{1});
  CHECK(draft.works[3].module == ModuleId{1});
  CHECK(draft.works[3].replica == 1);
  CHECK(draft.works[3].portions == std::vector<Portion>{{MicrobatchId{1}, 0, 1}});
}

TEST_CASE("dip options: what is out of range is an input error that names the field") {
  const auto rejects = [](auto change, const std::string& field) {
    DipOptions options;
    change(options);
    try {
      static_cast<void>(make_dip(options));
    } catch (const Error& error) {
      return error.kind() == ErrorKind::Input && error.where() == "dip: " + field;
    }
    return false;
  };
  CHECK_FALSE(rejects([](DipOptions&) {}, ""));
  CHECK(rejects([](DipOptions& o) { o.slice_sizes = {}; }, "slice_sizes"));
  CHECK(rejects([](DipOptions& o) { o.slice_sizes = {4, 4}; }, "slice_sizes"));
  CHECK(rejects([](DipOptions& o) { o.slice_sizes = {0, 4}; }, "slice_sizes"));
  CHECK(rejects([](DipOptions& o) { o.efficiency = 0.0; }, "efficiency"));
  CHECK(rejects([](DipOptions& o) { o.efficiency = 1.5; }, "efficiency"));
  CHECK(rejects([](DipOptions& o) { o.max_segments = 0; }, "max_segments"));
  CHECK(rejects([](DipOptions& o) { o.memory_levels = {}; }, "memory_levels"));
  CHECK(rejects([](DipOptions& o) { o.memory_levels = {RecomputeMode::Mixed}; }, "memory_levels"));
  CHECK(rejects([](DipOptions& o) { o.rounds = 0; }, "rounds"));
}

}  // namespace dipsim
