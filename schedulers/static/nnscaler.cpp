// SPDX-License-Identifier: Apache-2.0
// nnScaler as a baseline: the cut whose slowest stage is fastest among those that fit, and 1F1B.
// docs/baselines.md says what of nnScaler is left out.
#include "schedulers/static/orders.hpp"
#include "schedulers/static/stage_memory.hpp"
#include "schedulers/static/static_planner.hpp"
#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr StaticSchedule kSchedule{
    .name = "nnscaler", .rank_of = round_robin, .steps = one_f_one_b_steps};

/// What the activations of the representative batch are counted at, in percent, when memory is
/// planned: the more, the heavier may other batches be. A batch that is placed for itself needs
/// room for scratch memory only.
constexpr int kPercentStep = 5;
constexpr int kMostPercent = 300;
constexpr int kMostPercentForItself = 120;

/// 1F1B whose stages are chosen by a rule of their own.
class NnscalerPlanner final : public Planner {
 public:
  explicit NnscalerPlanner(PlannerOptions options)
      : options_(std::move(options)), runner_(make_static_planner(kSchedule, options_)) {}

  [[nodiscard]] Placement place(const Lowering& lowering,
                                const Batch& representative) const override {
    PlannerOptions given = options_;
    given.partition = PartitionRule::Given;
    given.given_layers = layers_per_stage(lowering, representative);
    Placement placement = make_static_planner(kSchedule, given)->place(lowering, representative);
    for (Note& note : placement.notes) {
      if (note.name == "partition by") {
        note.text = options_.activation_percent == 0
                        ? "time"
                        : fmt::format("time, of the cuts that fit with activations at {} %",
                                      options_.activation_percent);
      }
    }
    return placement;
  }

  [[nodiscard]] Draft slice(const Placement& placement, const Batch& batch,
                            const Lowering& lowering) const override {
    return runner_->slice(placement, batch, lowering);
  }

  [[nodiscard]] Schedule order(const TaskGraph& graph) const override {
    return runner_->order(graph);
  }

 private:
  [[nodiscard]] std::vector<int> layers_per_stage(const Lowering& lowering,
                                                  const Batch& batch) const {
    const auto times = layer_times(lowering, batch, options_.recompute);
    if (options_.activation_percent == 0) {
      return balanced_partition(times, lowering.problem().depth());
    }
    const std::optional<std::vector<int>> counts = balanced_partition(
        times, stage_ends(lowering, batch, options_.recompute, options_.activation_percent));
    if (!counts) {
      fail_infeasible("partition", "no cut of the layers keeps every stage within its memory");
    }
    return *counts;
  }

  PlannerOptions options_;
  std::unique_ptr<Planner> runner_;
};

}  // namespace

namespace schedules {

ScheduleInfo nnscaler() {
  return {.name = kSchedule.name,
          .summary = "cut whose slowest stage is fastest among those that fit, on one batch; 1F1B",
          .source =
              "nnScaler (OSDI'24), autodist/pipeline_solver.py; as configured by DIP (arXiv "
              "2504.14145), evaluation setup",
          .option_keys = {"recompute", "tune"},
          .alternatives =
              [](const PlannerOptions& asked, const Problem& /*problem*/) {
                std::vector<PlannerOptions> alternatives = {asked};
                const int most = asked.place_each_batch ? kMostPercentForItself : kMostPercent;
                for (int percent = 100; percent <= most; percent += kPercentStep) {
                  alternatives.push_back(asked);
                  alternatives.back().activation_percent = percent;
                }
                return alternatives;
              },
          .make = [](const PlannerOptions& options) -> std::unique_ptr<Planner> {
            return std::make_unique<NnscalerPlanner>(options);
          }};
}

}  // namespace schedules

}  // namespace dipsim
