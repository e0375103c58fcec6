// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/static_planner.hpp"

#include "schedulers/partition.hpp"
#include "schedulers/static/replicas.hpp"
#include "schedulers/static/stage_memory.hpp"
#include "sim/core/error.hpp"
#include "sim/core/parallel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace dipsim {

namespace {

/// Where no pass is to be ordered, what the ranks always hold must still fit.
void require_state_fits(const PipelineInstance& instance) {
  for (std::size_t rank = 0; rank < instance.ranks.size(); ++rank) {
    if (instance.room[rank] < Bytes{}) {
      fail_infeasible(fmt::format("rank {}", instance.ranks[rank].value),
                      fmt::format("weights, gradients, optimizer state and reserve exceed its "
                                  "memory limit by {} bytes",
                                  (-instance.room[rank]).count));
    }
  }
}

class StaticPlanner final : public Planner {
 public:
  StaticPlanner(const StaticSchedule& schedule, const PlannerOptions& options)
      : schedule_(schedule),
        options_(options),
        chunks_(options.chunks_per_rank == 0 ? schedule.default_chunks : options.chunks_per_rank) {
    check_chunks(schedule_, chunks_);
  }

  [[nodiscard]] Placement place(const Lowering& lowering,
                                const Batch& representative) const override {
    const Problem& problem = lowering.problem();
    const PipelineShape shape{.ranks = problem.depth(), .microbatches = 0, .chunks = chunks_};
    const int stages = shape.ranks * chunks_;
    const std::vector<int> counts = layers_per_stage(lowering, representative, stages);
    const auto layers = stage_layers(problem, counts, stages);

    Placement placement;
    placement.cells = problem.cells;
    placement.ranks = problem.ranks;
    placement.notes = {
        {.name = "chunks per rank", .text = fmt::format("{}", chunks_)},
        {.name = "partition by", .text = partition_note()},
        {.name = "layers per stage", .text = fmt::format("{}", fmt::join(counts, " "))}};
    for (int replica = 0; replica < problem.replicas; ++replica) {
      for (int stage = 0; stage < stages; ++stage) {
        const auto& ranges = layers[static_cast<std::size_t>(stage)];
        const ChunkMemory memory = lowering.memory(ranges);
        placement.chunks.push_back(
            {.layers = ranges,
             .rank = RankId{replica * shape.ranks + schedule_.rank_of(shape, stage)},
             .weight_set = stage,
             .weights = memory.weights,
             .gradients = memory.gradients,
             .optimizer = memory.optimizer});
      }
    }
    return placement;
  }

  [[nodiscard]] Draft slice(const Placement& placement, const Batch& batch,
                            const Lowering& /*lowering*/) const override {
    Draft draft{.placement = placement, .works = {}, .split_backward = schedule_.split_backward};
    draft.works.reserve(batch.microbatches());
    for (std::size_t m = 0; m < batch.microbatches(); ++m) {
      draft.works.push_back(
          {.replica = batch.replica[m], .portions = {{.microbatch = MicrobatchId{m}}}});
    }
    return draft;
  }

  [[nodiscard]] Schedule order(const TaskGraph& graph) const override {
    const std::vector<Replica> replicas = find_replicas(graph, schedule_);
    Schedule schedule;
    schedule.chosen = uniform_strategies(graph, options_.recompute);
    const std::vector<std::vector<Step>> steps = steps_of_ranks(graph, replicas, schedule.chosen);
    schedule.compute.reserve(graph.placement.cells.size(),
                             (schedule_.split_backward ? 3U : 2U) * graph.pairs.size());
    for (const RankId id : owners(graph)) {
      schedule.compute.add_row();
      if (!id.valid()) {
        continue;
      }
      const Rank& rank = graph.rank(id);
      const Replica& replica = replicas[static_cast<std::size_t>(rank.replica)];
      for (const Step& step : steps[id.row()]) {
        const TaskId pass = pass_of(graph.pair(replica.pair(rank.position, step)), step.op);
        if (pass.valid()) {  // frozen layers have no backward
          schedule.compute.push_back({.task = pass, .together = {}});
        }
      }
    }
    return schedule;
  }

 private:
  /// The steps of every rank of the graph.
  [[nodiscard]] std::vector<std::vector<Step>> steps_of_ranks(
      const TaskGraph& graph, const std::vector<Replica>& replicas,
      std::span<const StrategyId> chosen) const {
    std::vector<std::vector<Step>> steps(graph.placement.ranks.size());
    if (schedule_.timed_steps == nullptr) {
      for (std::size_t r = 0; r < steps.size(); ++r) {
        const Rank& rank = graph.placement.ranks[r];
        steps[r] =
            schedule_.steps(replicas[static_cast<std::size_t>(rank.replica)].shape, rank.position);
      }
      return steps;
    }
    const std::vector<PipelineInstance> instances = pipeline_instances(graph, replicas, chosen);
    const std::vector<std::size_t> equal = first_equal(instances);
    std::vector<std::vector<std::vector<Step>>> of_replica(instances.size());
    parallel_for(
        instances.size(), options_.control.jobs,
        [&](std::size_t r) {
          if (instances[r].shape.microbatches == 0) {
            require_state_fits(instances[r]);
          } else if (equal[r] == r) {
            of_replica[r] = schedule_.timed_steps(instances[r]);
          }
        },
        options_.control.stop);
    throw_if_stopped(options_.control.stop);
    for (std::size_t r = 0; r < instances.size(); ++r) {
      const std::vector<std::vector<Step>>& planned = of_replica[equal[r]];
      for (std::size_t position = 0; position < planned.size(); ++position) {
        steps[instances[r].ranks[position].row()] = planned[position];
      }
    }
    return steps;
  }

  [[nodiscard]] std::vector<int> layers_per_stage(const Lowering& lowering, const Batch& batch,
                                                  int stages) const {
    switch (options_.partition) {
      case PartitionRule::Parameters:
        return balanced_partition(layer_parameters(lowering.problem()), stages);
      case PartitionRule::PassTime:
        return layers_by_time(lowering, batch, stages);
      case PartitionRule::Given:
        break;
    }
    return options_.given_layers;
  }

  [[nodiscard]] std::vector<int> layers_by_time(const Lowering& lowering, const Batch& batch,
                                                int stages) const {
    const auto times = layer_times(lowering, batch, options_.recompute);
    if (options_.activation_percent == 0) {
      return balanced_partition(times, stages);
    }
    if (chunks_ != 1) {
      fail_input("partition", "memory is planned with for one chunk per rank only");
    }
    const std::optional<std::vector<int>> counts = balanced_partition(
        times, stage_ends(lowering, batch, options_.recompute, options_.activation_percent,
                          schedule_.split_backward));
    if (!counts) {
      fail_infeasible("partition", "no cut of the layers keeps every stage within its memory");
    }
    return *counts;
  }

  [[nodiscard]] std::string partition_note() const {
    std::string note(name_of(options_.partition));
    if (options_.partition == PartitionRule::PassTime && options_.activation_percent != 0) {
      note += fmt::format(", of the cuts that fit with activations at {} %",
                          options_.activation_percent);
    }
    return note;
  }

  /// The rank that computes on each cell.
  static std::vector<RankId> owners(const TaskGraph& graph) {
    std::vector<RankId> owner(graph.placement.cells.size());
    for (std::size_t r = 0; r < graph.placement.ranks.size(); ++r) {
      for (const CellId cell : graph.placement.ranks[r].cells) {
        if (owner[cell.row()].valid()) {
          fail_input(fmt::format("cell {}", cell.value),
                     fmt::format("ranks {} and {} share it; a fixed order needs cells of its own "
                                 "for every rank",
                                 owner[cell.row()].value, r));
        }
        owner[cell.row()] = RankId{r};
      }
    }
    return owner;
  }

  const StaticSchedule& schedule_;
  PlannerOptions options_;
  int chunks_;
};

}  // namespace

int round_robin(const PipelineShape& shape, int stage) { return stage % shape.ranks; }

std::vector<PlannerOptions> with_activation_percents(const PlannerOptions& asked, int most,
                                                     int step) {
  std::vector<PlannerOptions> alternatives = {asked};
  for (int percent = 100; percent <= most; percent += step) {
    alternatives.push_back(asked);
    alternatives.back().activation_percent = percent;
  }
  return alternatives;
}

std::vector<PlannerOptions> cuts_that_fit(const PlannerOptions& asked, const Problem& problem) {
  if (asked.partition != PartitionRule::PassTime || count_layers(problem) <= problem.depth()) {
    return {asked};  // only one cut
  }
  return with_activation_percents(asked, 200, 10);
}

std::unique_ptr<Planner> make_static_planner(const StaticSchedule& schedule,
                                             const PlannerOptions& options) {
  return std::make_unique<StaticPlanner>(schedule, options);
}

}  // namespace dipsim
