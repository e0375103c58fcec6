// SPDX-License-Identifier: Apache-2.0
// One schedule on one batch: the step that compare, plan and simulate share.
#pragma once

#include "experiment/machine.hpp"
#include "experiment/variants.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/results.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dipsim {

/// A plan without its graph, which can be lowered again.
struct KeptPlan {
  std::optional<Placement> placement;  ///< where it is the batch's own
  Schedule schedule;
};

/// What one variant did on one batch.
struct Outcome {
  IterationResult result;
  std::optional<Error> impossible;  ///< Input or Infeasible: why there is no result
  std::optional<KeptPlan> plan;     ///< where it was asked for
};

/// A schedule whose variants are placed and ready to plan batches. Thread-safe.
class PlacedSchedule {
 public:
  /// Throws Input or Infeasible where no variant can be placed: the first one's reason.
  PlacedSchedule(const ScheduleChoice& choice, const Lowering& lowering,
                 const Batch& representative);

  [[nodiscard]] const ScheduleChoice& choice() const { return choice_; }

  /// Those of variants_of() that differ in what they plan.
  [[nodiscard]] std::span<const Variant> variants() const { return variants_; }

  /// Graph and schedule of one batch under a variant. Throws Input or Infeasible where it has none.
  [[nodiscard]] PlanRun plan(const Batch& batch, std::size_t variant) const;

  /// The same under the variant that is best on this batch alone.
  [[nodiscard]] PlanRun best_plan(const Batch& batch, const Machine& machine) const;

  /// All variants on one batch, row by row, run by `machine`, with their plans if `keep_plans`.
  /// Throws where none is possible and the first one's reason is Input, and Stopped where the
  /// control of the choice's options asks for it.
  [[nodiscard]] std::vector<Outcome> run(const Batch& batch, const Machine& machine,
                                         bool keep_plans = false) const;

  /// The graph of a plan that was kept of this variant, and its schedule.
  [[nodiscard]] PlanRun restore(const Batch& batch, std::size_t variant, KeptPlan plan) const;

 private:
  /// A variant that can be placed has a placement, any other one the reason.
  struct Placed {
    std::unique_ptr<Planner> planner;
    Placement placement;
    std::optional<Error> impossible;
  };

  /// The placement of the batch alone, for variants that have one.
  [[nodiscard]] std::optional<Placement> own_placement(const Batch& batch,
                                                       std::size_t variant) const;

  /// The graph of a batch on `own`, or on the placement of all batches.
  [[nodiscard]] TaskGraph lower(const Batch& batch, std::size_t variant,
                                const std::optional<Placement>& own) const;

  [[nodiscard]] Placed place(const Variant& variant, const Batch& representative) const;

  /// Whether an earlier variant plans the same.
  [[nodiscard]] bool repeats(const Variant& variant, const Placed& placed) const;

  ScheduleChoice choice_;
  const Lowering& lowering_;
  std::vector<Variant> variants_;
  std::vector<Placed> placed_;  ///< per variant
};

/// How each variant did: `iterations` has a row per iteration, each with an outcome per variant.
std::vector<VariantRecord> records_of(std::span<const Variant> variants,
                                      std::span<const std::vector<Outcome>> iterations);

/// The figures of a plan that has run. Throws Internal when it beats its lower bound (without
/// jitter).
IterationResult measure(const PlanRun& run, const Machine& machine);

/// How many pairs offload, and how much all GPUs copy out together; nothing where none does.
std::vector<Note> offload_notes(const TaskGraph& graph, const Schedule& schedule);

/// The recompute mode that all pairs use, or "per pair"; "" without pairs.
std::string recompute_of(const TaskGraph& graph, const Schedule& schedule);

}  // namespace dipsim
