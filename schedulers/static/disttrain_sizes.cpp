// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/disttrain_sizes.hpp"

#include "schedulers/partition.hpp"
#include "schedulers/static/deal.hpp"
#include "schedulers/static/group_sizes.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace dipsim {

namespace {

/// Layers of a module in stages.
struct Cut {
  std::vector<int> layers;
  double slowest = 0.0;  ///< share of the slowest stage in the time of the module
};

/// What the fullest copy takes, over the steps of a batch.
struct FullestCopy {
  double mean = 0.0;  ///< load per step
  double largest = 0.0;
  std::vector<Portion> typical;  ///< of the step in the middle
  double typical_load = 0.0;
};

/// What the fullest copy needs of a module per step.
struct StepCost {
  Duration time{0};
  Bytes held{};  ///< at worst
};

class Sizer {
 public:
  Sizer(const Lowering& lowering, const Batch& batch, RecomputeMode mode, int activation_percent)
      : lowering_(lowering),
        problem_(lowering.problem()),
        batch_(batch),
        mode_(mode),
        percent_(activation_percent),
        degrees_(lowering.group_degrees()) {
    for (int rank = 0; rank < problem_.depth(); ++rank) {
      const Rank& one = problem_.ranks[static_cast<std::size_t>(rank)];
      if (one.cp > 1) {
        fail_input("schedule disttrain",
                   fmt::format("cp {}; its groups of GPUs share no sequences: legal: 1", one.cp));
      }
      gpus_ += one.tp;
    }
    const int least = degrees_.front() * static_cast<int>(problem_.modules.size());
    if (least > gpus_) {
      fail_input("schedule disttrain",
                 fmt::format("{} modules on {} GPUs per replica; each needs GPUs of its own: at "
                             "least {}",
                             problem_.modules.size(), gpus_, least));
    }
    cut_layers();
  }

  SizedGroups best() {
    std::optional<SizedGroups> best;
    bool adds_up = false;
    for (const int microbatches : step_sizes()) {
      const auto steps = steps_of(batch_, problem_.replicas, microbatches);
      const SizingProblem sizing = sizing_problem(steps);
      adds_up = adds_up || best_sizes(sizing).has_value();
      const auto chosen = best_sizes(sizing, [&](std::span<const std::size_t> rows) {
        return percent_ == 0 || fits(sizing, rows);
      });
      if (chosen && (!best || joined_time(sizing, *chosen) < best->time)) {
        best = sized(sizing, *chosen, microbatches);
      }
    }
    if (!adds_up) {
      fail_input("schedule disttrain",
                 fmt::format("no groups of tensor-parallel degrees {} use all {} GPUs of a replica",
                             degrees_.front(), gpus_));
    }
    if (!best) {
      fail_infeasible("schedule disttrain",
                      fmt::format("no division of the {} GPUs of a replica between the modules "
                                  "keeps every stage within its memory",
                                  gpus_));
    }
    return *std::move(best);
  }

 private:
  using Steps = std::vector<std::vector<MicrobatchStep>>;

  void cut_layers() {
    const std::vector<std::int64_t> times = layer_times(lowering_, batch_, mode_);
    auto first = times.begin();
    for (const ModuleShape& module : problem_.modules) {
      const std::vector<std::int64_t> own(first, first + module.layers);
      first += module.layers;
      const auto total = static_cast<double>(std::accumulate(own.begin(), own.end(), 0LL));
      std::vector<Cut>& cuts = cuts_.emplace_back();
      for (int pp = 1; pp <= std::min(module.layers, gpus_ / degrees_.front()); ++pp) {
        Cut cut{.layers = balanced_partition(own, pp)};
        auto layer = own.begin();
        std::int64_t slowest = 0;
        for (const int count : cut.layers) {
          slowest = std::max(slowest, std::accumulate(layer, layer + count, std::int64_t{0}));
          layer += count;
        }
        cut.slowest = total > 0.0 ? static_cast<double>(slowest) / total : 0.0;
        cuts.push_back(std::move(cut));
      }
    }
  }

  /// Divisors of the most microbatches that a replica has.
  [[nodiscard]] std::vector<int> step_sizes() const {
    int most = 0;
    for (int replica = 0; replica < problem_.replicas; ++replica) {
      most = std::max(most, static_cast<int>(std::ranges::count(batch_.replica, replica)));
    }
    std::vector<int> sizes;
    for (int size = 1; size <= std::min(most, gpus_); ++size) {
      if (most % size == 0) {
        sizes.push_back(size);
      }
    }
    return sizes;
  }

  /// A module alone in a group of this degree and so many copies, others as small as can be; null
  /// where they have too few GPUs.
  [[nodiscard]] const Lowering* alone(std::size_t module, ModuleGroup group) const {
    std::vector<ModuleGroup> groups(problem_.modules.size(), {.tp = degrees_.front()});
    groups[module] = group;
    int gpus = 0;
    for (const ModuleGroup& each : groups) {
      gpus += each.gpus();
    }
    return gpus > gpus_ ? nullptr : &lowering_.on_groups(groups);
  }

  [[nodiscard]] SizingProblem sizing_problem(const Steps& steps) {
    SizingProblem sizing{.options = {}, .inputs = {}, .gpus = gpus_};
    for (const auto& of_replica : steps) {
      sizing.steps = std::max(sizing.steps, static_cast<int>(of_replica.size()));
    }
    held_.clear();
    for (std::size_t m = 0; m < problem_.modules.size(); ++m) {
      sizing.inputs.push_back(problem_.modules[m].inputs);
      sizing.options.push_back(options_of(m, steps));
    }
    return sizing;
  }

  std::vector<GroupOption> options_of(std::size_t module, const Steps& steps) {
    std::vector<GroupOption> options;
    InstanceTimes times(*alone(module, {.tp = degrees_.front()}), batch_, mode_);
    const int others = degrees_.front() * (static_cast<int>(problem_.modules.size()) - 1);
    const int most = gpus_ - others;
    for (int copies = 1; copies * degrees_.front() <= most; ++copies) {
      const FullestCopy fullest = fullest_copy(module, steps, copies, times);
      for (const int tp : degrees_) {
        if (copies * tp > most) {
          break;
        }
        const StepCost cost = step_cost(module, tp, fullest);
        held_[{module, tp, copies}] = cost.held;
        const auto& cuts = cuts_[module];
        for (int pp = 1; pp <= static_cast<int>(cuts.size()) && copies * tp * pp <= most; ++pp) {
          const Cut& cut = cuts[static_cast<std::size_t>(pp - 1)];
          options.push_back({.group = {.tp = tp, .pp = pp, .copies = copies},
                             .slowest = scaled(cost.time, cut.slowest),
                             .all = cost.time});
        }
      }
    }
    return options;
  }

  [[nodiscard]] FullestCopy fullest_copy(std::size_t module, const Steps& steps, int copies,
                                         InstanceTimes& times) const {
    struct Fullest {
      std::int64_t load = 0;
      std::vector<Portion> portions;
    };

    std::vector<Fullest> all;
    for (const auto& of_replica : steps) {
      for (const MicrobatchStep& step : of_replica) {
        Fullest& fullest = all.emplace_back();
        for (std::vector<Portion>& dealt : deal(batch_, step, ModuleId{module}, copies, times)) {
          std::int64_t load = 0;
          for (const Portion& portion : dealt) {
            for (int i = portion.first; i < portion.first + portion.count; ++i) {
              load += times.of(portion.microbatch, ModuleId{module}, i);
            }
          }
          if (load > fullest.load || fullest.portions.empty()) {
            fullest = {.load = load, .portions = std::move(dealt)};
          }
        }
      }
    }
    std::ranges::stable_sort(all, {}, &Fullest::load);
    FullestCopy found;
    for (const Fullest& one : all) {
      found.mean += static_cast<double>(one.load) / static_cast<double>(all.size());
    }
    found.largest = static_cast<double>(all.back().load);
    Fullest& middle = all[all.size() / 2];
    // Where the step in the middle has no work, some later one has, or none.
    Fullest& typical = middle.load > 0 ? middle : all.back();
    found.typical = std::move(typical.portions);
    found.typical_load = static_cast<double>(typical.load);
    return found;
  }

  [[nodiscard]] StepCost step_cost(std::size_t module, int tp, const FullestCopy& fullest) const {
    if (fullest.typical.empty() || fullest.typical_load == 0.0) {
      return {};
    }
    const Lowering* costs = alone(module, {.tp = tp});
    const LayerRange all{
        .module = ModuleId{module}, .first = 0, .count = problem_.modules[module].layers};
    const Work work{.replica = batch_.replica[fullest.typical.front().microbatch.row()],
                    .module = ModuleId{module},
                    .portions = fullest.typical};
    const auto strategies = costs->costs(std::span(&all, 1), work, batch_);
    const Strategy& strategy = strategies[uniform_strategy(strategies, mode_)];
    const auto held = static_cast<double>(strategy.f_to_i.count);
    return {.time = scaled(strategy.f + strategy.b, fullest.mean / fullest.typical_load),
            .held = Bytes{std::llround(held * fullest.largest / fullest.typical_load)}};
  }

  static Duration scaled(Duration time, double factor) {
    return Duration{std::llround(static_cast<double>(time.count()) * factor)};
  }

  // Memory.

  /// Whether every stage holds its state and the activations of the steps that 1F1B has in flight
  /// there: one more than there are stages behind it.
  [[nodiscard]] bool fits(const SizingProblem& sizing, std::span<const std::size_t> rows) {
    const std::size_t modules = rows.size();
    std::vector<int> behind(modules, 0);  // stages behind the last one of each module
    for (std::size_t m = modules; m-- > 0;) {
      const ModuleGroup& group = sizing.options[m][rows[m]].group;
      for (int stage = 0; stage < group.pp; ++stage) {
        const int in_flight = std::min(behind[m] + group.pp - stage, sizing.steps);
        if (!stage_fits(m, group, stage, in_flight)) {
          return false;
        }
      }
      for (const ModuleId input : problem_.modules[m].inputs) {
        behind[input.row()] = std::max(behind[input.row()], behind[m] + group.pp);
      }
    }
    return true;
  }

  [[nodiscard]] bool stage_fits(std::size_t module, const ModuleGroup& group, int stage,
                                int in_flight) {
    const Cut& cut = cuts_[module][static_cast<std::size_t>(group.pp - 1)];
    const int layers = cut.layers[static_cast<std::size_t>(stage)];
    const double held = static_cast<double>(held_.at({module, group.tp, group.copies}).count) *
                        layers / problem_.modules[module].layers * in_flight * percent_ / 100.0;
    const Rank& rank = problem_.ranks.front();
    const Bytes room = rank.memory_limit - rank.reserved - state_of(module, group, stage);
    return held <= static_cast<double>(room.count);
  }

  Bytes state_of(std::size_t module, const ModuleGroup& group, int stage) {
    const std::array<int, 5> key = {static_cast<int>(module), group.tp, group.pp, group.copies,
                                    stage};
    const auto [entry, is_new] = states_.try_emplace(key);
    if (is_new) {
      const Cut& cut = cuts_[module][static_cast<std::size_t>(group.pp - 1)];
      const auto place = cut.layers.begin() + stage;
      const LayerRange range{.module = ModuleId{module},
                             .first = std::accumulate(cut.layers.begin(), place, 0),
                             .count = *place};
      const Lowering* costs = alone(module, {.tp = group.tp, .copies = group.copies});
      const ChunkMemory memory = costs->memory(std::span(&range, 1));
      entry->second = memory.weights + memory.gradients + memory.optimizer;
    }
    return entry->second;
  }

  [[nodiscard]] SizedGroups sized(const SizingProblem& sizing, std::span<const std::size_t> rows,
                                  int microbatches) const {
    SizedGroups sized{.groups = {},
                      .layers = {},
                      .microbatches = microbatches,
                      .time = joined_time(sizing, rows)};
    for (std::size_t m = 0; m < rows.size(); ++m) {
      sized.groups.push_back(sizing.options[m][rows[m]].group);
      sized.layers.push_back(cuts_[m][static_cast<std::size_t>(sized.groups.back().pp - 1)].layers);
    }
    return sized;
  }

  const Lowering& lowering_;
  const Problem& problem_;
  const Batch& batch_;
  RecomputeMode mode_;
  int percent_;
  std::vector<int> degrees_;
  int gpus_ = 0;                                             ///< of a replica
  std::vector<std::vector<Cut>> cuts_;                       ///< per module: into 1, 2, … stages
  std::map<std::tuple<std::size_t, int, int>, Bytes> held_;  ///< by module, tp and copies
  std::map<std::array<int, 5>, Bytes> states_;
};

}  // namespace

SizedGroups size_groups(const Lowering& lowering, const Batch& batch, RecomputeMode mode,
                        int activation_percent) {
  return Sizer(lowering, batch, mode, activation_percent).best();
}

}  // namespace dipsim
