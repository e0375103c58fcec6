// SPDX-License-Identifier: Apache-2.0
// Optimus as a baseline, its coarse rule only: encoder forwards stand before the backbone's first
// pass of a rank, encoder backwards after its last. docs/baselines.md says what is left out.
#include "schedulers/dip/partition.hpp"
#include "schedulers/registry.hpp"
#include "schedulers/static/orders.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/planner.hpp"
#include "sim/graph/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace dipsim {

namespace {

/// The module that no other one consumes: modules stand in topological order.
std::size_t backbone_of(std::size_t modules) { return modules - 1; }

bool is_consumed(const Problem& problem, std::size_t module) {
  return std::ranges::any_of(problem.modules, [&](const ModuleShape& other) {
    return std::ranges::find(other.inputs, ModuleId(module)) != other.inputs.end();
  });
}

void require_encoders(const Problem& problem) {
  const std::size_t backbone = backbone_of(problem.modules.size());
  if (backbone == 0) {
    fail_input("schedule optimus",
               fmt::format("the model has no encoder: its one module is {}; use megatron, which "
                           "is optimus without encoders",
                           problem.modules.front().name));
  }
  for (std::size_t m = 0; m < backbone; ++m) {
    if (!is_consumed(problem, m)) {
      fail_input("schedule optimus",
                 fmt::format("modules {} and {} feed no other one, but there is one backbone; use "
                             "megatron, which treats all modules as one chain",
                             problem.modules[m].name, problem.modules[backbone].name));
    }
  }
}

void require_layers(const Problem& problem, std::size_t module, int chunks) {
  const ModuleShape& shape = problem.modules[module];
  const int depth = problem.depth();
  if (shape.layers >= depth * chunks) {
    return;
  }
  const int most = shape.layers / depth;
  fail_input(
      fmt::format("schedule optimus: module {}", shape.name),
      most == 0
          ? fmt::format("{} layers can't be spread over {} ranks; use at most {} ranks",
                        shape.layers, depth, shape.layers)
          : fmt::format("{} layers can't make {} chunks on each of {} ranks; allowed: 1 to {}",
                        shape.layers, chunks, depth, most));
}

/// What one rank has to run.
struct RankPairs {
  std::vector<PairId> encoders;  ///< chunk by chunk, inside it microbatch by microbatch
  std::vector<PairId> backbone;  ///< the same
};

/// Turns a graph into the order of each rank.
class OptimusOrder {
 public:
  explicit OptimusOrder(const TaskGraph& graph)
      : graph_(graph), pairs_(graph.placement.ranks.size()) {
    const ModuleId backbone(backbone_of(graph.module_names.size()));
    for (std::size_t i = 0; i < graph.pairs.size(); ++i) {
      const Task& forward = graph.task(graph.pairs[i].f);
      RankPairs& own = pairs_[forward.rank.row()];
      const bool is_backbone = graph.works[forward.work.row()].module == backbone;
      (is_backbone ? own.backbone : own.encoders).emplace_back(i);
    }
    for (RankPairs& own : pairs_) {
      sort_by_chunk(own.encoders, std::less{});
      sort_by_chunk(own.backbone, std::less{});
    }
  }

  [[nodiscard]] std::vector<Slot> of_rank(RankId rank) const {
    std::vector<PairId> encoders = pairs_[rank.row()].encoders;
    std::vector<Slot> slots;
    for (const PairId pair : encoders) {
      add(pair, Op::F, slots);
    }
    add_backbone(rank, slots);
    sort_by_chunk(encoders, std::greater{});
    for (const PairId pair : encoders) {
      add(pair, Op::B, slots);
    }
    return slots;
  }

 private:
  [[nodiscard]] const Task& forward_of(PairId pair) const {
    return graph_.task(graph_.pair(pair).f);
  }

  /// Chunks in this order, works of a chunk in the order of their microbatches.
  void sort_by_chunk(std::vector<PairId>& pairs, auto order) const {
    std::ranges::sort(pairs, [&](PairId left, PairId right) {
      const Task& a = forward_of(left);
      const Task& b = forward_of(right);
      return a.chunk == b.chunk ? a.work < b.work : order(a.chunk, b.chunk);
    });
  }

  void add_backbone(RankId rank, std::vector<Slot>& slots) const {
    const std::vector<PairId>& pairs = pairs_[rank.row()].backbone;
    if (pairs.empty()) {
      return;
    }
    const ChunkId first = forward_of(pairs.front()).chunk;
    const auto microbatches =
        std::ranges::count_if(pairs, [&](PairId p) { return forward_of(p).chunk == first; });
    const Rank& own = graph_.rank(rank);
    const auto ranks = std::ranges::count(graph_.placement.ranks, own.replica, &Rank::replica);
    const PipelineShape shape{
        .ranks = static_cast<int>(ranks),
        .microbatches = static_cast<int>(microbatches),
        .chunks = static_cast<int>(static_cast<std::ptrdiff_t>(pairs.size()) / microbatches)};
    require_megatron_shape(shape, "optimus");
    for (const Step& step : megatron_steps(shape, own.position)) {
      const auto row = pairs.begin() + step.chunk * microbatches + step.microbatch;
      add(*row, step.op, slots);
    }
  }

  void add(PairId id, Op op, std::vector<Slot>& slots) const {
    const Pair& pair = graph_.pair(id);
    const TaskId pass = op == Op::F ? pair.f : pair.b;
    if (pass.valid()) {  // frozen layers have no backward
      slots.push_back({.task = pass, .together = {}});
    }
  }

  const TaskGraph& graph_;
  std::vector<RankPairs> pairs_;  ///< per rank
};

class OptimusPlanner final : public Planner {
 public:
  explicit OptimusPlanner(const PlannerOptions& options)
      : recompute_(options.recompute), chunks_(std::max(options.chunks_per_rank, 1)) {}

  [[nodiscard]] Placement place(const Lowering& lowering,
                                const Batch& /*representative*/) const override {
    const Problem& problem = lowering.problem();
    require_encoders(problem);
    const std::size_t backbone = backbone_of(problem.modules.size());
    dip::PartitionPlan plan;
    for (std::size_t m = 0; m <= backbone; ++m) {
      plan.modules.push_back({.slice_instances = 0, .segments = m == backbone ? chunks_ : 1});
      require_layers(problem, m, plan.modules.back().segments);
    }
    plan.notes = {
        {"backbone", problem.modules[backbone].name},
        {"chunks per rank", fmt::format("{} of the backbone, 1 of every encoder", chunks_)}};
    return dip::place_modules(lowering, plan);
  }

  [[nodiscard]] Draft slice(const Placement& placement, const Batch& batch,
                            const Lowering& /*lowering*/) const override {
    return dip::slice_batch(placement, batch);
  }

  [[nodiscard]] Schedule order(const TaskGraph& graph) const override {
    const OptimusOrder orders(graph);
    std::vector<std::vector<Slot>> of_cell(graph.placement.cells.size());
    for (std::size_t r = 0; r < graph.placement.ranks.size(); ++r) {
      const std::vector<Slot> slots = orders.of_rank(RankId(r));
      for (const CellId cell : graph.placement.ranks[r].cells) {
        of_cell[cell.row()].insert(of_cell[cell.row()].end(), slots.begin(), slots.end());
      }
    }
    Schedule schedule;
    for (const std::vector<Slot>& slots : of_cell) {
      schedule.compute.add_row(slots);
    }
    schedule.chosen = uniform_strategies(graph, recompute_);
    return schedule;
  }

 private:
  RecomputeMode recompute_;
  int chunks_;
};

}  // namespace

namespace schedules {

ScheduleInfo optimus() {
  return {.name = "optimus",
          .summary =
              "every module over all ranks; encoder forwards before the backbone, backwards after",
          .source =
              "Optimus (ATC'25, arXiv 2408.03505), coarse-grained bubble scheduling; as configured "
              "by DIP (arXiv 2504.14145), evaluation setup",
          .needs_encoder = true,
          .option_keys = {"chunks", "recompute"},
          .alternatives =
              [](const PlannerOptions& asked, const Problem& problem) {
                return megatron_alternatives(asked, problem.modules.back().layers, problem.depth());
              },
          .make = [](const PlannerOptions& options) -> std::unique_ptr<Planner> {
            return std::make_unique<OptimusPlanner>(options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
