// SPDX-License-Identifier: Apache-2.0
#include "experiment/variants.hpp"

#include "experiment/single.hpp"
#include "experiment/synthetic_plan.hpp"
#include "tests/models/fake_costs.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

namespace {

using Labels = std::vector<std::string>;

/// No transfer time, no scratch memory.
class Plain : public test::FakeCosts {
 public:
  using FakeCosts::FakeCosts;

  [[nodiscard]] Bytes transient(std::span<const LayerRange> /*layers*/, const Work& /*work*/,
                                const Batch& /*batch*/) const override {
    return Bytes{0};
  }

  [[nodiscard]] TransferCost transfer(const Chunk& /*from*/, const Chunk& /*to*/,
                                      const Work& /*from_work*/, const Work& /*to_work*/,
                                      const Batch& /*batch*/) const override {
    return {};
  }
};

/// Equal layers with F = 1 and B = 2 (B = 3 where F runs again). A layer holds a byte per token and
/// microbatch under keep and none under full; weights, gradients and optimizer state are 18 bytes.
class Chain : public Plain {
 public:
  Chain(int layers, int ranks, std::int64_t memory_limit)
      : Plain({{"lm", layers, 1, 1, 1, true, {}}}, ranks), limited_(FakeCosts::problem()) {
    for (Rank& rank : limited_.ranks) {
      rank.memory_limit = Bytes{memory_limit};
    }
  }

  [[nodiscard]] const Problem& problem() const override { return limited_; }

 private:
  Problem limited_;
};

Batch microbatches(int count) {
  return test::fake_batch(std::vector<test::FakeMicrobatch>(static_cast<std::size_t>(count),
                                                            test::FakeMicrobatch{{1}}));
}

Labels labels_of(const char* schedule, const Lowering& lowering) {
  Labels labels;
  for (const Variant& variant : variants_of(parse_schedule(schedule, "test"), lowering.problem())) {
    labels.push_back(variant.label);
  }
  return labels;
}

struct Choice {
  std::string label;
  Duration total{0};
  std::vector<Note> notes;

  [[nodiscard]] std::string note(std::string_view name) const {
    const auto found = std::ranges::find(notes, name, &Note::name);
    return found == notes.end() ? "" : found->text;
  }
};

/// What compare() decides on these batches, the first of which is representative.
Choice choose(const char* schedule, const Lowering& lowering, const std::vector<Batch>& batches) {
  const PlacedSchedule placed(parse_schedule(schedule, "test"), lowering, batches.front());
  std::vector<std::vector<Outcome>> outcomes;
  outcomes.reserve(batches.size());
  for (const Batch& batch : batches) {
    outcomes.push_back(placed.run(batch, {}));
  }
  const auto records = records_of(placed.variants(), outcomes);
  const std::size_t best = best_variant(records).value_or(records.size());
  REQUIRE(best < records.size());
  return {.label = records[best].label,
          .total = records[best].total,
          .notes = variant_notes(records, best, batches.size())};
}

VariantRecord record(const char* label, int total, int peak, std::size_t too_large) {
  return {
      .label = label, .total = Duration{total}, .worst_peak = Bytes{peak}, .too_large = too_large};
}

}  // namespace

TEST_CASE(
    "variants: the recompute modes, times the numbers of chunks where a schedule has several") {
  const Chain eleven(11, 2, 1000);
  CHECK(labels_of("1f1b", eleven) == Labels{"keep", "selective", "full"});
  CHECK(labels_of("1f1b:recompute=full", eleven) == Labels{"full"});
  CHECK(labels_of("dip", eleven) == Labels{"per pair"});
  // 11 layers on 2 ranks: 4 chunks per rank have a layer each, 8 do not.
  CHECK(labels_of("megatron", eleven) == Labels{"v=1 keep", "v=1 selective", "v=1 full", "v=2 keep",
                                                "v=2 selective", "v=2 full", "v=4 keep",
                                                "v=4 selective", "v=4 full"});
  CHECK(labels_of("megatron:chunks=3", eleven) == Labels{"keep", "selective", "full"});
  CHECK(labels_of("megatron:recompute=full", eleven) == Labels{"v=1 full", "v=2 full", "v=4 full"});
  CHECK(labels_of("megatron:chunks=2:recompute=keep", eleven) == Labels{"keep"});
  // As many layers as chunks are enough.
  CHECK(labels_of("megatron:recompute=keep", Chain(8, 2, 1000)).back() == "v=4 keep");
  CHECK(labels_of("megatron:recompute=keep", Chain(7, 2, 1000)).back() == "v=2 keep");
}

TEST_CASE("the fastest variant that always fits is best, the first among equals") {
  const std::vector<VariantRecord> records = {record("fast", 5, 90, 1), record("slow", 9, 50, 0),
                                              record("good", 7, 70, 0), record("equal", 7, 60, 0)};
  CHECK(best_variant(records) == 2);
}

TEST_CASE("where no variant fits, the one with the least worst peak is best") {
  const std::vector<VariantRecord> records = {record("a", 5, 90, 3), record("b", 9, 80, 3),
                                              record("c", 4, 80, 1)};
  CHECK(best_variant(records) == 1);
}

TEST_CASE("an impossible variant is never best, and with nothing else there is none") {
  std::vector<VariantRecord> records = {record("a", 0, 0, 0), record("b", 9, 80, 1)};
  records[0].impossible = "no";
  CHECK(best_variant(records) == 1);
  records[1].impossible = "neither";
  CHECK_FALSE(best_variant(records).has_value());
}

TEST_CASE("notes say which variant was chosen and what became of the others") {
  std::vector<VariantRecord> records = {
      record("v=1 keep", 4'000'000, 0, 2), record("v=1 full", 9'000'000, 5, 0),
      record("v=2 keep", 7'000'000, 0, 1), record("v=2 full", 6'000'000, 5, 0),
      record("v=4 full", 0, 0, 0),         record("v=8 full", 7'500'000, 5, 0)};
  records[0].worst_peak = Bytes{std::int64_t{3} << 30U};
  records[4].impossible = "microbatches: 3";
  CHECK(variant_notes(records, 3, 3) ==
        std::vector<Note>{
            {"chosen", "v=2 full, the fastest that fits of 6 variants"},
            {"next best", "v=8 full (2.5 ms)"},
            {"too large", "v=1 keep (2 of 3 iterations, at worst 3.00 GiB); 1 that are slower too"},
            {"impossible", "v=4 full: microbatches: 3"}});
  CHECK(variant_notes(std::span(records).first(1), 0, 3).empty());
}

TEST_CASE("where none fits, the notes list every variant that is too large") {
  const std::vector<VariantRecord> records = {record("keep", 4, 7, 2), record("full", 9, 5, 2)};
  CHECK(variant_notes(records, 1, 2) ==
        std::vector<Note>{{"chosen", "full, the smallest, as none fits, of 2 variants"},
                          {"too large",
                           "keep (2 of 2 iterations, at worst 0.00 GiB); "
                           "full (2 of 2 iterations, at worst 0.00 GiB)"}});
}

// 8 layers on 2 ranks, 4 microbatches. v chunks per rank of 4/v layers each take
// (4v + 1)(F + B) of a chunk: 60, 54 and 51 ns for v = 1, 2, 4 under keep, 80, 72 and 68 under
// full. Rank 0 holds 72 bytes of state and under keep 2, 5 and 9 chunks at once: 80, 82 and 81
// bytes in all; under full, while B runs, the chunk that it rebuilds: 76, 74 and 73.
TEST_CASE("megatron: deeper interleaving is faster, as long as it fits") {
  const std::vector<Batch> batches = {microbatches(4)};
  const auto with_limit = [&](std::int64_t limit) {
    return choose("megatron", Chain(8, 2, limit), batches);
  };
  CHECK(with_limit(82).label == "v=4 keep");
  CHECK(with_limit(82).total == Duration{51});
  CHECK(with_limit(82).note("next best") == "v=2 keep (0.0 ms)");
  CHECK(with_limit(81).label == "v=4 keep");
  CHECK(with_limit(81).note("too large") == "1 that are slower too");  // v=2 keep
  CHECK(with_limit(80).label == "v=1 keep");
  CHECK(with_limit(80).total == Duration{60});
  CHECK(with_limit(80).note("too large").starts_with("v=2 keep (1 of 1 iterations"));
  // Nothing keeps below 80 bytes; selective recomputes as much as full here, and comes first.
  CHECK(with_limit(79).label == "v=4 selective");
  CHECK(with_limit(79).total == Duration{68});
  CHECK(with_limit(72).label == "v=4 selective");
  CHECK(with_limit(72).note("chosen").find("none fits") != std::string::npos);
}

TEST_CASE("megatron: plain 1F1B where the microbatches are no multiple of the ranks") {
  const Choice choice = choose("megatron", Chain(8, 2, 1000), {microbatches(3)});
  CHECK(choice.label == "v=1 keep");
  CHECK(choice.total == Duration{4 * 12});
  CHECK(choice.note("impossible")
            .starts_with("6 variants, v=2 keep to v=4 full: microbatches: 3 per replica"));
}

TEST_CASE("a variant must fit every iteration, and the mean over all of them decides") {
  const Chain chain(8, 2, 80);
  // Twice the tokens hold twice the bytes: keep is too large on the second iteration only.
  const Batch heavy = test::fake_batch(std::vector<test::FakeMicrobatch>(4, {{2}}));
  const Choice choice = choose("1f1b", chain, {microbatches(4), heavy});
  CHECK(choice.label == "selective");
  CHECK(choice.total == Duration{5 * 16 + 5 * 32});
  CHECK(choice.note("too large").starts_with("keep (1 of 2 iterations"));
}

// One vision layer of 1 + 6, two text layers of 3 + 7 per token, 2 ranks. The representative batch
// is cut 1 | 2 under keep, 2 | 1 under full. On the other one, where text prevails, this suits
// better, by more than recomputation costs.
TEST_CASE("a heavier mode can be the fastest, by its own cut of the layers") {
  const Plain costs({{"vit", 1, 1, 6, 0, true, {}}, {"lm", 2, 3, 7, 0, true, {ModuleId{0}}}}, 2);
  const Batch batch = test::fake_batch({{{1}, {3}}, {{3}, {4}}, {{3}, {4}}});
  const PlacedSchedule placed(parse_schedule("1f1b", "test"), costs,
                              test::fake_batch({{{3}, {2}}}));
  const std::vector<std::vector<Outcome>> outcomes = {placed.run(batch, {})};
  const auto records = records_of(placed.variants(), outcomes);
  CHECK(records[0].total == Duration{239});
  CHECK(records[2].total == Duration{223});
  CHECK(best_variant(records) == 1);  // selective recomputes as much as full here
}

TEST_CASE("where every variant is impossible, the error is that of the first") {
  const Chain chain(8, 2, 1000);
  const PlacedSchedule placed(parse_schedule("interleaved", "test"), chain, microbatches(3));
  const Error order = test::error_of([&] { (void)placed.run(microbatches(3), {}); });
  CHECK(order.kind() == ErrorKind::Input);
  CHECK(order.where() == "microbatches");
  const Error place = test::error_of(
      [&] { PlacedSchedule(parse_schedule("megatron:chunks=5", "test"), chain, microbatches(4)); });
  CHECK(place.kind() == ErrorKind::Input);
  CHECK(place.where() == "partition");
}

// A vision layer takes 4 + 1, a text layer 1 + 4; where F runs again 9 and 6. 4 + 4 layers on 2
// ranks: 20 | 20 under keep; under full 3 · 9 | 9 + 4 · 6 beats 4 · 9 | 4 · 6.
TEST_CASE("a partition by time is balanced at the pass times of the variant's own mode") {
  const test::FakeCosts costs(
      {{"vit", 4, 4, 1, 0, true, {}}, {"lm", 4, 1, 2, 2, true, {ModuleId{0}}}}, 2);
  const Batch batch = test::fake_batch({{{1}, {1}}});
  for (const char* schedule : {"1f1b", "nnscaler"}) {
    const PlacedSchedule placed(parse_schedule(schedule, "test"), costs, batch);
    const auto layers = [&](std::size_t variant) {
      const auto notes = placed.plan(batch, variant).graph.placement.notes;
      return std::ranges::find(notes, "layers per stage", &Note::name)->text;
    };
    REQUIRE(placed.variants()[2].label == "full");
    CHECK(layers(0) == "4 4");
    CHECK(layers(2) == "3 5");
  }
}

// 8 layers on 2 ranks, 4 microbatches of a token. Rank 0 has 2 of them in flight: 18 + 2 bytes per
// layer; rank 1 holds 18 + 1. An equal cut needs 80 bytes on rank 0; 3 + 5 layers need 60 and 95.
TEST_CASE("nnscaler moves layers away from a rank without room, instead of recomputing") {
  class Uneven final : public Chain {
   public:
    Uneven() : Chain(8, 2, 0), uneven_(Chain::problem()) {
      uneven_.ranks[0].memory_limit = Bytes{70};
      uneven_.ranks[1].memory_limit = Bytes{100};
    }

    [[nodiscard]] const Problem& problem() const override { return uneven_; }

   private:
    Problem uneven_;
  };

  const Uneven costs;
  const Choice choice = choose("nnscaler", costs, {microbatches(4)});
  CHECK(choice.label == "keep, activations at 100 %");
  // 5 layers are the bottleneck: the first forward of rank 0, 4 · 15 on rank 1, the last backward.
  CHECK(choice.total == Duration{3 + 60 + 6});
  CHECK(choice.note("too large").starts_with("keep (1 of 1 iterations"));
  CHECK(choose("1f1b", costs, {microbatches(4)}).note("chosen").find("none fits") !=
        std::string::npos);
}

TEST_CASE("variants that cut the layers alike are one variant") {
  const auto labels = [](const char* schedule, std::int64_t limit) {
    const Chain chain(8, 2, limit);
    Labels found;
    const PlacedSchedule placed(parse_schedule(schedule, "test"), chain, microbatches(4));
    for (const Variant& variant : placed.variants()) {
      found.push_back(variant.label);
    }
    return found;
  };
  CHECK(labels("nnscaler:recompute=keep", 1000) == Labels{"keep"});
  CHECK(labels("nnscaler:tune=batch:recompute=keep", 1000).size() ==
        12);  // and 100, 102, ... 120 %
  CHECK(labels("nnscaler", 1000) == Labels{"keep", "selective", "full"});
}

TEST_CASE("the best plan of a batch is that of its best variant") {
  const Chain chain(8, 2, 1000);
  const Batch batch = microbatches(4);
  const PlacedSchedule placed(parse_schedule("megatron", "test"), chain, batch);
  const PlanRun run = placed.best_plan(batch, {});
  CHECK(run.graph.placement.chunks.size() == 8);  // v = 4 on 2 ranks
  CHECK(simulate(run.graph, run.schedule, {}).makespan == Duration{51});
}

TEST_CASE("a synthetic pipeline is planned whatever number of variants the schedule has") {
  const SyntheticSpec spec{.ranks = 4, .microbatches = 8};
  for (const char* schedule : {"1f1b", "megatron", "nnscaler", "nnscaler:tune=batch"}) {
    const PlanFile plan = synthetic_plan(spec, parse_schedule(schedule, "test"));
    CHECK(simulate(plan.graph, plan.schedule, {}).makespan == std::chrono::milliseconds(11 * 3));
  }
}

TEST_CASE("nnscaler tuned on the batch cuts the layers anew for each, and says so") {
  const test::FakeCosts costs(
      {{"vit", 6, 1, 1, 1, true, {}}, {"lm", 6, 1, 1, 1, true, {ModuleId{0}}}}, 2);
  const Batch images = test::fake_batch({{{3}, {1}}});
  const Batch text = test::fake_batch({{{0}, {1}}});
  const auto counts = [&](const char* schedule, const Batch& batch) {
    const PlacedSchedule placed(parse_schedule(schedule, "test"), costs, images);
    const Placement placement = placed.plan(batch, 0).graph.placement;
    const bool says_so =
        std::ranges::find(placement.notes, "placed", &Note::name) != placement.notes.end();
    CHECK(says_so == (std::string(schedule) == "nnscaler:tune=batch"));
    return std::ranges::find(placement.notes, "layers per stage", &Note::name)->text;
  };
  // 6 · 9 + 6 · 3 = 72 are 4 · 9 | 2 · 9 + 6 · 3; without images 3 · 3 | 3 · 3.
  CHECK(counts("nnscaler", images) == "4 8");
  CHECK(counts("nnscaler", text) == "4 8");
  CHECK(counts("nnscaler:tune=representative", text) == "4 8");
  CHECK(counts("nnscaler:tune=batch", images) == "4 8");
  CHECK(counts("nnscaler:tune=batch", text) == "9 3");
}

}  // namespace dipsim
