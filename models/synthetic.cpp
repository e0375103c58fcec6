// SPDX-License-Identifier: Apache-2.0
#include "models/synthetic.hpp"

#include "models/lower.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

constexpr std::int64_t kMaxPasses = 10'000'000;

void check_count(int value, std::string_view flag) {
  if (value < 1 || value > kMaxPasses) {
    fail_input(std::string(flag),
               fmt::format("{} is out of range; allowed: 1 to {}; nearest legal: {}", value,
                           kMaxPasses, value < 1 ? 1 : kMaxPasses));
  }
}

void check_sizes(const SyntheticSpec& spec) {
  check_count(spec.ranks, "--ranks");
  check_count(spec.chunks, "--chunks");
  check_count(spec.microbatches, "--microbatches");
  check_count(spec.replicas, "--replicas");
  std::int64_t passes = 1;
  for (const int factor : {spec.ranks, spec.chunks, spec.microbatches, spec.replicas}) {
    passes *= factor;  // both at most 10^7
    if (passes > kMaxPasses) {
      fail_input(
          "--ranks × --chunks × --microbatches × --replicas",
          fmt::format("{} × {} × {} × {} forward passes are too many; allowed: {}", spec.ranks,
                      spec.chunks, spec.microbatches, spec.replicas, kMaxPasses));
    }
  }
}

void check_time(Duration time, std::string_view flag) {
  const auto max = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(kMaxSeconds));
  if (time < Duration{0} || time > max) {
    fail_input(std::string(flag), fmt::format("{} ns is out of range; allowed: 0 to {} ns",
                                              time.count(), max.count()));
  }
}

void check_bytes(Bytes bytes, std::string_view flag) {
  if (bytes.count < 0 || static_cast<double>(bytes.count) > kMaxBytes) {
    fail_input(std::string(flag), fmt::format("{} bytes are out of range; allowed: 0 to {:.0f}",
                                              bytes.count, kMaxBytes));
  }
}

/// One time per stage.
std::vector<Duration> per_stage(const std::vector<Duration>& times, std::size_t stages,
                                std::string_view flag) {
  if (times.size() != 1 && times.size() != stages) {
    fail_input(std::string(flag),
               fmt::format("{} values for {} stages (ranks × chunks); allowed: 1 value or {}",
                           times.size(), stages, stages));
  }
  for (const Duration time : times) {
    check_time(time, flag);
  }
  return times.size() == stages ? times : std::vector<Duration>(stages, times.front());
}

Problem make_problem(const SyntheticSpec& spec) {
  Problem problem;
  problem.replicas = spec.replicas;
  const int stages = spec.ranks * spec.chunks;
  problem.modules.push_back(
      {.name = "stage",
       .layers = stages,
       .layer_parameters = std::vector<double>(static_cast<std::size_t>(stages), 1.0),
       .inputs = {},
       .trained = true});
  for (int replica = 0; replica < spec.replicas; ++replica) {
    for (int position = 0; position < spec.ranks; ++position) {
      const CellId cell{problem.ranks.size()};
      const GpuId gpu{problem.ranks.size()};
      problem.cells.add_row(std::span(&gpu, 1));
      problem.ranks.push_back({.replica = replica,
                               .position = position,
                               .cells = {cell},
                               .memory_limit = spec.memory_limit});
    }
  }
  return problem;
}

class Synthetic final : public Lowering, public CostSource {
 public:
  explicit Synthetic(const SyntheticSpec& spec) : spec_(spec) {
    check_sizes(spec);
    check_time(spec.p2p_occupied, "--p2p-us");
    check_time(spec.p2p_latency, "--p2p-latency-us");
    check_bytes(spec.activation, "--activation-mib");
    check_bytes(spec.activation_for_weight, "--activation-for-weight-mib");
    check_bytes(spec.memory_limit, "--memory-limit-mib");
    const auto stages =
        static_cast<std::size_t>(spec.ranks) * static_cast<std::size_t>(spec.chunks);
    forward_ = per_stage(spec.forward, stages, "--forward-us");
    backward_input_ = per_stage(spec.backward_input, stages, "--backward-input-us");
    backward_weight_ = per_stage(spec.backward_weight, stages, "--backward-weight-us");
    check_total();
    problem_ = make_problem(spec);
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
    Strategy keep;
    for (const LayerRange& range : layers) {
      for (int layer = range.first; layer < range.first + range.count; ++layer) {
        const auto stage = static_cast<std::size_t>(layer);
        keep.f += forward_[stage];
        keep.i += backward_input_[stage];
        keep.w += backward_weight_[stage];
        keep.f_to_i += spec_.activation;
        keep.i_to_w += spec_.activation_for_weight;
      }
    }
    // Times are those of one microbatch; a work may hold several.
    const auto microbatches =
        static_cast<std::int64_t>(std::max<std::size_t>(1, work.portions.size()));
    for (Duration* time : {&keep.f, &keep.i, &keep.w}) {
      *time *= microbatches;
    }
    keep.f_to_i = Bytes{keep.f_to_i.count * microbatches};
    keep.i_to_w = Bytes{keep.i_to_w.count * microbatches};
    keep.b = keep.i + keep.w;
    return {keep};
  }

  [[nodiscard]] Bytes transient(std::span<const LayerRange> /*layers*/, const Work& /*work*/,
                                const Batch& /*batch*/) const override {
    return {};
  }

  [[nodiscard]] TransferCost transfer(const Chunk& /*from*/, const Chunk& /*to*/,
                                      const Work& /*from_work*/, const Work& /*to_work*/,
                                      const Batch& /*batch*/) const override {
    return {.occupied = spec_.p2p_occupied, .latency = spec_.p2p_latency, .bytes = {}};
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
  /// All passes and transfers one after the other must fit 64 bits with room to spare: validate()
  /// of a task graph adds up to six times as much.
  void check_total() const {
    double per_microbatch = 0.0;
    for (std::size_t stage = 0; stage < forward_.size(); ++stage) {
      per_microbatch += to_seconds(forward_[stage]) + to_seconds(backward_input_[stage]) +
                        to_seconds(backward_weight_[stage]) + 2.0 * to_seconds(spec_.p2p_occupied) +
                        2.0 * to_seconds(spec_.p2p_latency);
    }
    const double total = per_microbatch * spec_.microbatches * spec_.replicas;
    constexpr double max_total = 7e8;
    if (total > max_total) {
      fail_input("--forward-us, --backward-input-us, --backward-weight-us, --p2p-us",
                 fmt::format("all passes and transfers together take {:.3g} s; allowed: at most "
                             "{:g} s",
                             total, max_total));
    }
  }

  SyntheticSpec spec_;
  std::vector<Duration> forward_;  ///< per stage, as are the next two
  std::vector<Duration> backward_input_;
  std::vector<Duration> backward_weight_;
  Problem problem_;
};

}  // namespace

std::unique_ptr<Lowering> make_synthetic(const SyntheticSpec& spec) {
  return std::make_unique<Synthetic>(spec);
}

Batch synthetic_batch(const SyntheticSpec& spec) {
  check_sizes(spec);
  Batch batch;
  batch.modules = 1;
  for (int replica = 0; replica < spec.replicas; ++replica) {
    for (int microbatch = 0; microbatch < spec.microbatches; ++microbatch) {
      const Instance instance{.tokens = 1, .output_tokens = 1, .first_group = 0, .group_count = 1};
      batch.replica.push_back(replica);
      batch.instances.add_row(std::span(&instance, 1));
    }
  }
  batch.groups = {1};
  return batch;
}

}  // namespace dipsim
