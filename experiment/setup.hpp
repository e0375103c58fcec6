// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/spec.hpp"
#include "models/model_lowering.hpp"
#include "schedulers/registry.hpp"
#include "sim/core/error.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/results.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace dipsim {

/// Everything an experiment reads before its first schedule.
struct Setup {
  std::string title;
  std::vector<Note> inputs;
  std::unique_ptr<ModelLowering> lowering;
  std::vector<Batch> batches;  ///< one per iteration
  std::vector<LoadSeries> loads;
  std::vector<std::string> remarks;  ///< how the data were treated, for the report
  std::vector<std::string> warnings;
  std::size_t representative = 0;  ///< the iteration with the median useful FLOPs

  // The same for schedules that shard weights; empty where the experiment has none.
  std::unique_ptr<ModelLowering> sharded_lowering;
  std::vector<Batch> sharded_batches;
  /// Why there are none although a schedule wants them.
  std::optional<Error> sharded_impossible;

  /// What a schedule is planned on. Throws sharded_impossible.
  [[nodiscard]] const ModelLowering& lowering_of(const ScheduleInfo& schedule) const;
  [[nodiscard]] const std::vector<Batch>& batches_of(const ScheduleInfo& schedule) const;
};

/// Loads model, cluster and trace, and packs all iterations; a stop ends it early, with fewer of
/// them. Throws Input or Infeasible.
Setup prepare(const ExperimentSpec& spec, const std::stop_token& stop = {});

/// The same with just one iteration of the trace, counted from 0: it is the representative one.
Setup prepare_iteration(const ExperimentSpec& spec, std::size_t iteration);

}  // namespace dipsim
