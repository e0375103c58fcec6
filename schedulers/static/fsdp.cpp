// SPDX-License-Identifier: Apache-2.0
// Fully sharded data parallelism: no pipeline; weights are gathered layer by layer.
#include "schedulers/partition.hpp"
#include "schedulers/registry.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace dipsim {

namespace {

class FsdpPlanner final : public Planner {
 public:
  explicit FsdpPlanner(const PlannerOptions& options) : options_(options) {}

  /// Every layer is a chunk of its own on every rank: the unit that is gathered.
  [[nodiscard]] Placement place(const Lowering& lowering,
                                const Batch& /*representative*/) const override {
    const Problem& problem = lowering.problem();
    if (problem.depth() != 1) {
      fail_input("schedule fsdp",
                 fmt::format("{} pipeline ranks per replica; it needs pp 1", problem.depth()));
    }
    Placement placement{
        .cells = problem.cells,
        .ranks = problem.ranks,
        .chunks = {},
        .groups = {},
        .slice_instances = {},
        .step_microbatches = 1,
        .notes = {{"units", fmt::format("{} layers, gathered one ahead", count_layers(problem))}}};
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
      int weight_set = 0;
      for (std::size_t m = 0; m < problem.modules.size(); ++m) {
        for (int layer = 0; layer < problem.modules[m].layers; ++layer) {
          const LayerRange range{.module = ModuleId{m}, .first = layer, .count = 1};
          const ChunkMemory memory = lowering.memory(std::span(&range, 1));
          placement.chunks.push_back({.layers = {range},
                                      .rank = RankId{r},
                                      .weight_set = weight_set++,
                                      .weights = memory.weights,
                                      .gradients = memory.gradients,
                                      .optimizer = memory.optimizer});
        }
      }
    }
    return placement;
  }

  [[nodiscard]] Draft slice(const Placement& placement, const Batch& batch,
                            const Lowering& /*lowering*/) const override {
    Draft draft{.placement = placement, .works = {}, .gather_weights = true};
    for (std::size_t m = 0; m < batch.microbatches(); ++m) {
      draft.works.push_back({.replica = batch.replica[m],
                             .module = {},
                             .portions = {{.microbatch = MicrobatchId{m}}}});
    }
    return draft;
  }

  /// Microbatch by microbatch, F along the layers and B back.
  [[nodiscard]] Schedule order(const TaskGraph& graph) const override {
    Schedule schedule;
    schedule.chosen = uniform_strategies(graph, options_.recompute);
    std::vector<std::vector<TaskId>> passes(graph.placement.cells.size());
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      const Task& task = graph.tasks[t];
      if (is_pass(task.op)) {
        passes[graph.rank(task.rank).cells.front().row()].push_back(TaskId{t});
      }
    }
    for (std::vector<TaskId>& cell : passes) {
      std::ranges::sort(cell, {}, [&](TaskId id) {
        const Task& task = graph.task(id);
        const bool forward = task.op == Op::F;
        return std::tuple(task.work, !forward, forward ? task.chunk.value : -task.chunk.value);
      });
      schedule.compute.add_row();
      for (const TaskId task : cell) {
        schedule.compute.push_back({.task = task, .together = {}});
      }
    }
    return schedule;
  }

 private:
  PlannerOptions options_;
};

}  // namespace

namespace schedules {

ScheduleInfo fsdp() {
  return {.name = "fsdp",
          .summary =
              "no pipeline: every GPU holds a share of all weights and gathers them layer by "
              "layer (ZeRO-3)",
          .source = "PyTorch FSDP (arXiv 2304.11277) §3.3; ZeRO (arXiv 1910.02054) §5.3",
          .shards_weights = true,
          .default_chunks = 0,
          .option_keys = {"recompute"},
          .make = [](const PlannerOptions& options) -> std::unique_ptr<Planner> {
            return std::make_unique<FsdpPlanner>(options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
