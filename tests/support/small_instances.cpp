// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_instances.hpp"

#include "models/lower.hpp"
#include "sim/core/random.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace dipsim::test {

namespace {

constexpr std::size_t kModules = 2;
constexpr std::array<const char*, kModules> kNames = {"encoder", "llm"};

/// One module on one microbatch.
struct Part {
  double amount = 0.0;
  double b_over_f = 2.0;
  double i_share = 0.5;
};

/// What an instance consists of, by module m, rank r and microbatch b.
struct Numbers {
  int ranks = 2;
  int microbatches = 2;
  std::vector<std::array<double, kModules>> forward_us;  ///< [r][m], per amount
  std::vector<std::array<Part, kModules>> parts;         ///< [b][m]
  std::array<double, kModules> held_mb{};                ///< per amount
  std::array<double, kModules> transient_mb{};
  double kept_share = 1.0;
  double latency_us = 0.0;
  double occupied_us = 0.0;  ///< per amount
  double room = 1.0;         ///< u of the header
};

double between(RandomStream& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

Numbers draw(RandomStream& random) {
  Numbers n;
  n.ranks = static_cast<int>(random.integer(2, 3));
  n.microbatches = static_cast<int>(random.integer(2, 4));
  std::array<double, kModules> base{};
  for (std::size_t m = 0; m < kModules; ++m) {
    base[m] = between(random, 200.0, 1000.0);
    n.held_mb[m] = between(random, 10.0, 100.0);
    n.transient_mb[m] = between(random, 0.0, 10.0);
  }
  n.forward_us.resize(static_cast<std::size_t>(n.ranks));
  for (auto& of_rank : n.forward_us) {
    for (std::size_t m = 0; m < kModules; ++m) {
      of_rank[m] = base[m] * between(random, 0.7, 1.3);
    }
  }
  n.parts.resize(static_cast<std::size_t>(n.microbatches));
  for (auto& parts : n.parts) {
    const bool text_only = random.uniform() < 0.2;
    parts[0].amount = text_only ? 0.0 : between(random, 0.25, 1.75);
    parts[1].amount = between(random, 0.8, 1.2);
    for (Part& part : parts) {
      part.b_over_f = between(random, 1.6, 2.4);
      part.i_share = between(random, 0.4, 0.6);
    }
  }
  const auto transfers = random.integer(0, 2);
  n.latency_us = transfers >= 1 ? between(random, 10.0, 100.0) : 0.0;
  n.occupied_us = transfers == 2 ? between(random, 10.0, 200.0) : 0.0;
  n.kept_share = between(random, 0.3, 1.0);
  n.room = random.uniform() < 0.5 ? 1.0 : between(random, 0.0, 0.6);
  return n;
}

Duration microseconds(double us) { return round_to_duration(us * 1e-6); }

Bytes megabytes(double mb) { return round_to_bytes(mb * 1e6); }

/// The costs of these numbers. A work is one module on one microbatch: its portion names both.
class SmallCosts final : public Lowering, public CostSource {
 public:
  explicit SmallCosts(const Numbers& numbers) : numbers_(numbers) {
    for (std::size_t m = 0; m < kModules; ++m) {
      ModuleShape module;
      module.name = kNames[m];
      module.layers = numbers.ranks;
      module.layer_parameters.assign(static_cast<std::size_t>(numbers.ranks), 1.0);
      if (m > 0) {
        module.inputs = {ModuleId(m - 1)};
      }
      problem_.modules.push_back(module);
    }
    for (int r = 0; r < numbers.ranks; ++r) {
      const GpuId gpu{r};
      problem_.cells.add_row(std::span(&gpu, 1));
      Rank rank;
      rank.position = r;
      rank.cells = {CellId{r}};
      problem_.ranks.push_back(rank);
    }
    const Bytes limit = memory_limit();
    for (Rank& rank : problem_.ranks) {
      rank.memory_limit = limit;
    }
  }

  [[nodiscard]] const Problem& problem() const override { return problem_; }

  [[nodiscard]] std::vector<Strategy> costs(std::span<const LayerRange> layers, const Work& work,
                                            const Batch& batch) const override {
    return strategies(layers, work, batch);
  }

  [[nodiscard]] ChunkMemory memory(std::span<const LayerRange> /*layers*/) const override {
    return {};
  }

  [[nodiscard]] TaskGraph lower(const Draft& draft, const Batch& batch) const override {
    return lower_draft(draft, batch, *this);
  }

  [[nodiscard]] std::vector<Strategy> strategies(std::span<const LayerRange> layers,
                                                 const Work& work,
                                                 const Batch& /*batch*/) const override {
    // One layer per rank: its number is that of the rank.
    return {strategy(layers.front().module.row(), static_cast<std::size_t>(layers.front().first),
                     work.portions.front().microbatch.row())};
  }

  [[nodiscard]] Bytes transient(std::span<const LayerRange> layers, const Work& /*work*/,
                                const Batch& /*batch*/) const override {
    return megabytes(numbers_.transient_mb[layers.front().module.row()]);
  }

  [[nodiscard]] TransferCost transfer(const Chunk& from, const Chunk& /*to*/, const Work& from_work,
                                      const Work& /*to_work*/,
                                      const Batch& /*batch*/) const override {
    const double amount =
        part(from.layers.front().module.row(), from_work.portions.front().microbatch.row()).amount;
    return {.occupied = microseconds(numbers_.occupied_us * amount),
            .latency = microseconds(numbers_.latency_us),
            .bytes = {}};
  }

  [[nodiscard]] TransferCost gradient_reduction(const Chunk& /*chunk*/) const override {
    return {};
  }

  [[nodiscard]] Duration optimizer_step(std::span<const Chunk> /*chunks_of_rank*/) const override {
    return Duration{0};
  }

  [[nodiscard]] bool trains(ModuleId /*module*/) const override { return true; }

  [[nodiscard]] double model_flops(const Batch& /*batch*/) const override { return 0.0; }

  [[nodiscard]] double peak_flops_per_s() const override { return 0.0; }

 private:
  [[nodiscard]] const Part& part(std::size_t module, std::size_t microbatch) const {
    return numbers_.parts[microbatch][module];
  }

  [[nodiscard]] Strategy strategy(std::size_t m, std::size_t r, std::size_t b) const {
    const Part& p = part(m, b);
    const double f = p.amount * numbers_.forward_us[r][m];
    Strategy keep;
    keep.f = microseconds(f);
    keep.b = microseconds(f * p.b_over_f);
    keep.i = microseconds(f * p.b_over_f * p.i_share);
    keep.w = keep.b - keep.i;
    keep.f_to_i = megabytes(p.amount * numbers_.held_mb[m]);
    keep.i_to_w = megabytes(p.amount * numbers_.held_mb[m] * numbers_.kept_share);
    return keep;
  }

  /// All ranks hold the same bytes of a microbatch.
  [[nodiscard]] Bytes memory_limit() const {
    Bytes one{};
    Bytes all{};
    Bytes scratch{};
    for (std::size_t b = 0; b < numbers_.parts.size(); ++b) {
      Bytes of_microbatch{};
      for (std::size_t m = 0; m < kModules; ++m) {
        of_microbatch += strategy(m, 0, b).f_to_i;
        if (part(m, b).amount > 0.0) {
          scratch = std::max(scratch, megabytes(numbers_.transient_mb[m]));
        }
      }
      one = std::max(one, of_microbatch);
      all += of_microbatch;
    }
    const double more = static_cast<double>((all - one).count);
    return one + scratch + round_to_bytes(numbers_.room * more);
  }

  Numbers numbers_;
  Problem problem_;
};

/// One instance per module and microbatch that has work for it. Their lengths tell them apart:
/// works that hold equal instances are costed once.
Batch batch_of(const Numbers& numbers) {
  Batch batch;
  batch.modules = kModules;
  for (std::size_t b = 0; b < numbers.parts.size(); ++b) {
    batch.replica.push_back(0);
    const auto length = static_cast<std::int32_t>(b + 1);
    batch.groups.push_back(length);
    for (std::size_t m = 0; m < kModules; ++m) {
      batch.instances.add_row();
      if (numbers.parts[b][m].amount > 0.0) {
        batch.instances.push_back({.tokens = length,
                                   .output_tokens = length,
                                   .first_group = static_cast<std::int32_t>(b),
                                   .group_count = 1});
      }
    }
  }
  return batch;
}

/// As DIP places and slices with one segment per module and whole microbatches. Written out here,
/// so that the instances stay what they are when a planner changes.
Draft draft_of(const Problem& problem, const Batch& batch) {
  Draft draft;
  draft.placement.cells = problem.cells;
  draft.placement.ranks = problem.ranks;
  draft.placement.slice_instances.assign(kModules, 0);
  for (std::size_t m = 0; m < kModules; ++m) {
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
      Chunk chunk;
      chunk.layers = {{.module = ModuleId(m), .first = static_cast<int>(r), .count = 1}};
      chunk.rank = RankId(r);
      chunk.weight_set = static_cast<int>(draft.placement.chunks.size());
      draft.placement.chunks.push_back(chunk);
    }
  }
  for (std::size_t b = 0; b < batch.microbatches(); ++b) {
    for (std::size_t m = 0; m < kModules; ++m) {
      if (!batch.of(MicrobatchId(b), ModuleId(m)).empty()) {
        Work work;
        work.module = ModuleId(m);
        work.portions = {{.microbatch = MicrobatchId(b), .first = 0, .count = 1}};
        draft.works.push_back(work);
      }
    }
  }
  return draft;
}

}  // namespace

SmallInstance small_instance(std::uint64_t seed, std::size_t index) {
  RandomStream random(seed, "small instance", index);
  const Numbers numbers = draw(random);
  const SmallCosts costs(numbers);
  const Batch batch = batch_of(numbers);
  Draft draft = draft_of(costs.problem(), batch);
  SmallInstance instance;
  instance.ranks = numbers.ranks;
  instance.microbatches = numbers.microbatches;
  instance.room = numbers.room;
  instance.whole = costs.lower(draft, batch);
  draft.split_backward = true;
  instance.split = costs.lower(draft, batch);
  return instance;
}

}  // namespace dipsim::test
