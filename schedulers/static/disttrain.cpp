// SPDX-License-Identifier: Apache-2.0
// DistTrain as a baseline: every module on GPUs of its own, with its own tensor parallelism, stages
// and copies; 1F1B through all of them. docs/baselines.md says what is left out.
#include "schedulers/registry.hpp"
#include "schedulers/static/deal.hpp"
#include "schedulers/static/disttrain_sizes.hpp"
#include "schedulers/static/static_planner.hpp"
#include "sim/graph/planner.hpp"
#include "sim/graph/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// The groups that a placement of this schedule has.
std::vector<ModuleGroup> groups_of(const Placement& placement, std::size_t modules) {
  std::vector<ModuleGroup> groups(modules, {.tp = 1, .pp = 0, .copies = 0});
  for (const Chunk& chunk : placement.chunks) {
    const Rank& rank = placement.ranks[chunk.rank.row()];
    ModuleGroup& group = groups[chunk.layers.front().module.row()];
    if (rank.replica == 0) {
      group.tp = rank.tp;
      group.copies = std::max(group.copies, chunk.copy + 1);
      group.pp += chunk.copy == 0 ? 1 : 0;
    }
  }
  return groups;
}

std::vector<Note> notes_of(const SizedGroups& sized, const Problem& problem) {
  std::vector<Note> notes;
  for (std::size_t m = 0; m < sized.groups.size(); ++m) {
    const ModuleGroup& group = sized.groups[m];
    notes.push_back(
        {"group " + problem.modules[m].name,
         fmt::format("{} GPUs per replica: tp {}, {} stages of {} layers, {} copies", group.gpus(),
                     group.tp, group.pp, fmt::join(sized.layers[m], " "), group.copies)});
  }
  notes.push_back({"microbatches per step", fmt::format("{}", sized.microbatches)});
  notes.push_back({"sized for", fmt::format("{:.1f} ms", to_milliseconds(sized.time))});
  return notes;
}

/// Turns a graph into the order of each rank.
class JoinedOrder {
 public:
  explicit JoinedOrder(const TaskGraph& graph)
      : graph_(graph),
        behind_(graph.placement.ranks.size(), 0),
        pairs_(graph.placement.ranks.size()) {
    count_behind();
    const std::vector<std::size_t> steps = steps_of_works();
    for (std::size_t p = 0; p < graph.pairs.size(); ++p) {
      const Task& forward = graph.task(graph.pairs[p].f);
      std::vector<PairId>& own = pairs_[forward.rank.row()];
      const std::size_t step = steps[forward.work.row()];
      own.resize(std::max(own.size(), step + 1));
      own[step] = PairId{p};
    }
  }

  /// 1F1B: as many forwards first as there are stages behind, then a backward after each.
  [[nodiscard]] std::vector<Slot> of_rank(std::size_t rank) const {
    const std::vector<PairId>& pairs = pairs_[rank];
    const std::size_t ahead = behind_[rank];
    std::vector<Slot> slots;
    for (std::size_t t = 0; t < pairs.size() + ahead; ++t) {
      if (t < pairs.size() && pairs[t].valid()) {
        slots.push_back({.task = graph_.pair(pairs[t]).f, .together = {}});
      }
      if (t >= ahead && pairs[t - ahead].valid() && graph_.pair(pairs[t - ahead]).b.valid()) {
        slots.push_back({.task = graph_.pair(pairs[t - ahead]).b, .together = {}});
      }
    }
    return slots;
  }

 private:
  /// Ranks stand in flow order, so that the longest way from each is known when those behind it
  /// are.
  void count_behind() {
    std::vector<std::pair<RankId, RankId>> hops;
    for (const Edge& edge : graph_.edges) {
      const Task& transfer = graph_.task(edge.to);
      if (transfer.op == Op::Transfer && graph_.task(edge.from).op == Op::F) {
        hops.emplace_back(transfer.rank, transfer.peer);
      }
    }
    std::ranges::sort(hops, std::ranges::greater{});
    for (const auto& [from, to] : hops) {
      behind_[from.row()] = std::max(behind_[from.row()], behind_[to.row()] + 1);
    }
  }

  /// Works stand step by step, in a step by module and copy. Steps without a work in common may
  /// count as one, which leaves every rank its order.
  [[nodiscard]] std::vector<std::size_t> steps_of_works() const {
    std::vector<std::size_t> steps;
    for (std::size_t w = 0; w < graph_.works.size(); ++w) {
      const Work& work = graph_.works[w];
      const Work* before = w > 0 ? &graph_.works[w - 1] : nullptr;
      if (before == nullptr || before->replica != work.replica) {
        steps.push_back(0);
      } else {
        const bool same =
            std::pair(before->module, before->copy) < std::pair(work.module, work.copy);
        steps.push_back(steps.back() + (same ? 0 : 1));
      }
    }
    return steps;
  }

  const TaskGraph& graph_;
  std::vector<std::size_t> behind_;         ///< per rank: stages behind it, on the longest way
  std::vector<std::vector<PairId>> pairs_;  ///< per rank and step; none where it has no work
};

class DistTrainPlanner final : public Planner {
 public:
  explicit DistTrainPlanner(const PlannerOptions& options) : options_(options) {}

  [[nodiscard]] Placement place(const Lowering& lowering,
                                const Batch& representative) const override {
    const SizedGroups sized =
        size_groups(lowering, representative, options_.recompute, options_.activation_percent);
    const Lowering& costs = lowering.on_groups(sized.groups);
    const Problem& problem = costs.problem();
    Placement placement{.cells = problem.cells,
                        .ranks = problem.ranks,
                        .chunks = {},
                        .groups = {},
                        .slice_instances = {},
                        .step_microbatches = sized.microbatches,
                        .notes = notes_of(sized, problem)};
    int rank = 0;
    for (int replica = 0; replica < problem.replicas; ++replica) {
      int first_set = 0;
      for (std::size_t m = 0; m < sized.groups.size(); ++m) {
        for (int copy = 0; copy < sized.groups[m].copies; ++copy) {
          add_pipeline(costs, ModuleId{m}, copy, sized.layers[m], rank, first_set, placement);
          rank += sized.groups[m].pp;
        }
        first_set += sized.groups[m].pp;
      }
    }
    return placement;
  }

  [[nodiscard]] Draft slice(const Placement& placement, const Batch& batch,
                            const Lowering& lowering) const override {
    Draft draft{.placement = placement,
                .works = {},
                .groups = groups_of(placement, lowering.problem().modules.size())};
    InstanceTimes times(lowering.on_groups(draft.groups), batch, options_.recompute);
    const auto steps = steps_of(batch, lowering.problem().replicas, placement.step_microbatches);
    for (std::size_t replica = 0; replica < steps.size(); ++replica) {
      for (const MicrobatchStep& step : steps[replica]) {
        for (std::size_t m = 0; m < draft.groups.size(); ++m) {
          auto dealt = deal(batch, step, ModuleId{m}, draft.groups[m].copies, times);
          for (std::size_t copy = 0; copy < dealt.size(); ++copy) {
            if (!dealt[copy].empty()) {
              draft.works.push_back({.replica = static_cast<int>(replica),
                                     .module = ModuleId{m},
                                     .copy = static_cast<int>(copy),
                                     .portions = std::move(dealt[copy])});
            }
          }
        }
      }
    }
    return draft;
  }

  [[nodiscard]] Schedule order(const TaskGraph& graph) const override {
    const JoinedOrder orders(graph);
    std::vector<std::vector<Slot>> of_cell(graph.placement.cells.size());
    for (std::size_t r = 0; r < graph.placement.ranks.size(); ++r) {
      const std::vector<Slot> slots = orders.of_rank(r);
      for (const CellId cell : graph.placement.ranks[r].cells) {
        of_cell[cell.row()].insert(of_cell[cell.row()].end(), slots.begin(), slots.end());
      }
    }
    Schedule schedule;
    for (const std::vector<Slot>& slots : of_cell) {
      schedule.compute.add_row(slots);
    }
    schedule.chosen = uniform_strategies(graph, options_.recompute);
    return schedule;
  }

 private:
  /// The chunks of one copy, on consecutive ranks from `rank` on.
  static void add_pipeline(const Lowering& costs, ModuleId module, int copy,
                           const std::vector<int>& layers, int rank, int weight_set,
                           Placement& placement) {
    int first = 0;
    for (const int count : layers) {
      const LayerRange range{.module = module, .first = first, .count = count};
      const ChunkMemory memory = costs.memory(std::span(&range, 1));
      placement.chunks.push_back({.layers = {range},
                                  .rank = RankId{rank++},
                                  .weight_set = weight_set++,
                                  .copy = copy,
                                  .weights = memory.weights,
                                  .gradients = memory.gradients,
                                  .optimizer = memory.optimizer});
      first += count;
    }
  }

  PlannerOptions options_;
};

}  // namespace

namespace schedules {

ScheduleInfo disttrain() {
  return {.name = "disttrain",
          .summary =
              "every module on GPUs of its own, as many as its work needs, with its own tensor "
              "parallelism; 1F1B through all",
          .source = "DistTrain (SIGCOMM'25, arXiv 2408.04275), disaggregated model orchestration",
          .option_keys = {"recompute"},
          .alternatives = [](const PlannerOptions& asked, const Problem& /*problem*/)
              -> std::vector<PlannerOptions> { return with_activation_percents(asked, 200, 25); },
          .make = [](const PlannerOptions& options) -> std::unique_ptr<Planner> {
            return std::make_unique<DistTrainPlanner>(options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
