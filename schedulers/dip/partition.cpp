// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/partition.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace dipsim::dip {

namespace {

/// Where and how large the typical instance of a module is.
struct Typical {
  Instance instance;
  std::size_t count = 0;           ///< instances in the batch
  std::size_t per_microbatch = 0;  ///< most of them in one microbatch
};

/// The lower median by tokens; none when the batch has no instance for the module.
std::optional<Typical> typical_instance(const Batch& batch, ModuleId module) {
  std::vector<Instance> all;
  std::size_t most = 0;
  for (std::size_t m = 0; m < batch.microbatches(); ++m) {
    const auto instances = batch.of(MicrobatchId(m), module);
    all.insert(all.end(), instances.begin(), instances.end());
    most = std::max(most, instances.size());
  }
  if (all.empty()) {
    return std::nullopt;
  }
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::ranges::nth_element(all, middle, {}, [](const Instance& i) {
    return std::tuple(i.tokens, i.context_tokens, i.output_tokens, i.first_group);
  });
  return Typical{.instance = *middle, .count = all.size(), .per_microbatch = most};
}

/// Times a module on hypothetical microbatches of equal instances.
class ModuleTimer {
 public:
  ModuleTimer(const Lowering& lowering, const Batch& batch, ModuleId module, Instance typical)
      : lowering_(lowering),
        module_(module),
        layers_{
            .module = module, .first = 0, .count = lowering.problem().modules[module.row()].layers},
        typical_(typical),
        groups_(batch.groups) {}

  /// F and B of all layers on `instances` instances at once, under the fastest strategy.
  [[nodiscard]] Duration time(int instances) const {
    Batch batch;
    batch.modules = lowering_.problem().modules.size();
    batch.replica = {0};
    batch.groups = groups_;
    for (std::size_t m = 0; m < batch.modules; ++m) {
      batch.instances.add_row();
      if (m == module_.row()) {
        for (int i = 0; i < instances; ++i) {
          batch.instances.push_back(typical_);
        }
      }
    }
    Work work;
    work.module = module_;
    work.portions = {{.microbatch = MicrobatchId(std::size_t{0}), .first = 0, .count = instances}};
    const auto strategies = lowering_.costs(std::span(&layers_, 1), work, batch);
    DIPSIM_CHECK(!strategies.empty(), "a lowering gave no strategy");
    return strategies.front().f + strategies.front().b;
  }

 private:
  const Lowering& lowering_;
  ModuleId module_;
  LayerRange layers_;
  Instance typical_;
  std::vector<std::int32_t> groups_;
};

/// What was found out about one module.
struct Profile {
  bool known = false;  ///< the representative batch has instances for it
  int slice_instances = 0;
  Duration time{0};
  std::string why = "whole microbatches: the representative batch has nothing for it";
};

std::string describe_sizes(std::span<const int> sizes, std::span<const double> shares) {
  std::vector<std::string> tried(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    tried[i] = fmt::format("{}: {:.1f} %", sizes[i], 100.0 * shares[i]);
  }
  return fmt::format("{}", fmt::join(tried, ", "));
}

Profile profile_module(const ModuleTimer& timer, const Typical& typical,
                       const DipOptions& options) {
  if (typical.per_microbatch == 1) {
    return {.known = true,
            .slice_instances = 1,
            .time = timer.time(1),
            .why = "1: a microbatch has one instance"};
  }
  const std::vector<int>& sizes = options.slice_sizes;
  std::vector<Duration> times(sizes.size());
  std::vector<double> shares(sizes.size());  // throughput, then its share of the best
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    times[i] = timer.time(sizes[i]);
    shares[i] = sizes[i] / std::max(1.0, static_cast<double>(times[i].count()));
  }
  const double best = std::ranges::max(shares);
  for (double& share : shares) {
    share /= best;
  }
  if (sizes.size() == 1) {
    return {.known = true,
            .slice_instances = sizes.front(),
            .time = times.front(),
            .why = fmt::format("{}: given", sizes.front())};
  }
  const auto found = static_cast<std::size_t>(
      std::ranges::find_if(shares, [&](double s) { return s >= options.efficiency; }) -
      shares.begin());
  return {.known = true,
          .slice_instances = sizes[found],
          .time = times[found],
          .why = fmt::format("{}: the smallest size with {:g} % of the best throughput; instances "
                             "of {} tokens (median of {}), {}",
                             sizes[found], 100.0 * options.efficiency, typical.instance.tokens,
                             typical.count, describe_sizes(sizes, shares))};
}

void require_layers(const Problem& problem) {
  for (std::size_t m = 0; m < problem.modules.size(); ++m) {
    const ModuleShape& module = problem.modules[m];
    if (module.layers < problem.depth()) {
      fail_input(fmt::format("module {}", module.name),
                 fmt::format("{} layers can't be spread over {} pipeline ranks (rank {} would get "
                             "none); dip places every module on all ranks: use at most {} ranks",
                             module.layers, problem.depth(), module.layers, module.layers));
    }
  }
}

/// T / shortest, cut down to what the layers and the options allow.
int choose_segments(const ModuleShape& shape, int depth, const Profile& profile, Duration shortest,
                    int max_segments, std::string& why) {
  const std::int64_t ratio =
      shortest.count() > 0 ? std::max<std::int64_t>(1, profile.time / shortest) : 1;
  const int most = std::min(shape.layers / depth, max_segments);
  const int segments = static_cast<int>(std::min<std::int64_t>(ratio, most));
  why = fmt::format(
      "{}: {:.3f} ms for forward and backward of a slice, over {:.3f} ms of the "
      "fastest module, is {}; at most {} ({} layers on {} ranks)",
      segments, to_milliseconds(profile.time), to_milliseconds(shortest), ratio, most, shape.layers,
      depth);
  return segments;
}

std::vector<Profile> profile_modules(const Lowering& lowering, const Batch& representative,
                                     const DipOptions& options) {
  std::vector<Profile> profiles(lowering.problem().modules.size());
  for (std::size_t m = 0; m < profiles.size(); ++m) {
    const ModuleId module(m);
    if (const auto typical = typical_instance(representative, module)) {
      const ModuleTimer timer(lowering, representative, module, typical->instance);
      profiles[m] = profile_module(timer, *typical, options);
    }
  }
  return profiles;
}

}  // namespace

PartitionPlan choose_partition(const Lowering& lowering, const Batch& representative,
                               const DipOptions& options) {
  const Problem& problem = lowering.problem();
  DIPSIM_CHECK(representative.modules == problem.modules.size(),
               "the batch is not one of this model");
  require_layers(problem);
  PartitionPlan plan;
  plan.modules.resize(problem.modules.size());
  if (!options.partitioner) {
    plan.notes.push_back({"partitioner", "off: whole microbatches, one segment per module"});
    return plan;
  }
  const std::vector<Profile> profiles = profile_modules(lowering, representative, options);
  Duration shortest = Duration::max();
  for (const Profile& profile : profiles) {
    shortest = profile.known ? std::min(shortest, profile.time) : shortest;
  }
  for (std::size_t m = 0; m < profiles.size(); ++m) {
    const ModuleShape& shape = problem.modules[m];
    std::string why = "1: the representative batch has nothing for it";
    plan.modules[m].slice_instances = profiles[m].slice_instances;
    if (profiles[m].known) {
      plan.modules[m].segments =
          choose_segments(shape, problem.depth(), profiles[m], shortest, options.max_segments, why);
    }
    plan.notes.push_back({"B " + shape.name, profiles[m].why});
    plan.notes.push_back({"K " + shape.name, why});
  }
  return plan;
}

std::vector<int> even_layers(int layers, int chunks) {
  std::vector<int> counts(static_cast<std::size_t>(chunks), layers / chunks);
  std::fill_n(counts.begin(), layers % chunks, layers / chunks + 1);
  return counts;
}

Placement place_modules(const Lowering& lowering, const PartitionPlan& plan) {
  const Problem& problem = lowering.problem();
  const int depth = problem.depth();
  Placement placement;
  placement.cells = problem.cells;
  placement.ranks = problem.ranks;
  placement.notes = plan.notes;
  for (const ModulePlan& module : plan.modules) {
    placement.slice_instances.push_back(module.slice_instances);
  }

  std::vector<Chunk> chunks;  // of the first replica
  for (std::size_t m = 0; m < plan.modules.size(); ++m) {
    const ModuleShape& shape = problem.modules[m];
    const int count = depth * plan.modules[m].segments;
    if (shape.layers < count) {
      fail_input(fmt::format("module {}", shape.name),
                 fmt::format("{} layers can't make {} segments on {} ranks; allowed: up to {}",
                             shape.layers, plan.modules[m].segments, depth, shape.layers / depth));
    }
    const std::vector<int> counts =
        plan.modules[m].layers.empty() ? even_layers(shape.layers, count) : plan.modules[m].layers;
    int first = 0;
    for (int c = 0; c < count; ++c) {
      const int layers = counts[static_cast<std::size_t>(c)];
      Chunk chunk;
      chunk.layers = {{.module = ModuleId(m), .first = first, .count = layers}};
      chunk.rank = RankId(c % depth);
      chunk.weight_set = static_cast<int>(chunks.size());
      const ChunkMemory memory = lowering.memory(chunk.layers);
      chunk.weights = memory.weights;
      chunk.gradients = memory.gradients;
      chunk.optimizer = memory.optimizer;
      chunks.push_back(std::move(chunk));
      first += layers;
    }
  }
  for (int replica = 0; replica < problem.replicas; ++replica) {
    for (Chunk chunk : chunks) {
      chunk.rank.value += replica * depth;
      placement.chunks.push_back(std::move(chunk));
    }
  }
  return placement;
}

Draft slice_batch(const Placement& placement, const Batch& batch) {
  DIPSIM_CHECK(placement.slice_instances.size() == batch.modules,
               "the batch is not one of this placement's model");
  Draft draft{.placement = placement, .works = {}, .layer_mixes = true};
  for (std::size_t m = 0; m < batch.microbatches(); ++m) {
    for (std::size_t i = 0; i < batch.modules; ++i) {
      const ModuleId module(i);
      const auto instances = static_cast<int>(batch.of(MicrobatchId(m), module).size());
      if (instances == 0) {
        continue;
      }
      const int most = placement.slice_instances[i] == 0 ? instances : placement.slice_instances[i];
      const int slices = (instances + most - 1) / most;
      int first = 0;
      for (int s = 0; s < slices; ++s) {
        const int count = instances / slices + (s < instances % slices ? 1 : 0);
        Work work;
        work.replica = batch.replica[m];
        work.module = module;
        work.portions = {{.microbatch = MicrobatchId(m), .first = first, .count = count}};
        draft.works.push_back(std::move(work));
        first += count;
      }
    }
  }
  return draft;
}

}  // namespace dipsim::dip
