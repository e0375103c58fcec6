// SPDX-License-Identifier: Apache-2.0
// Every schedule that dipsim knows, by name.
#pragma once

#include "schedulers/dip/options.hpp"
#include "schedulers/partition.hpp"
#include "sim/graph/lowering.hpp"
#include "sim/graph/planner.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace dipsim {

/// What a user may ask of a schedule. Those that choose memory pair by pair follow `dip` and
/// nothing else; those that do not ignore it.
struct PlannerOptions {
  RecomputeMode recompute = RecomputeMode::Keep;  ///< of every pair
  int chunks_per_rank = 0;                        ///< 0: the schedule's default
  PartitionRule partition = PartitionRule::PassTime;
  std::vector<int> given_layers{};  ///< per stage, for PartitionRule::Given
  int activation_percent = 0;       ///< at which a partition counts the activations of its batch,
                                    ///< to find what fits; 0: it does not look at memory
  bool place_each_batch = false;    ///< anew on the very batch, instead of once per run
  DipOptions dip{};
  PlanControl control{};
};

struct ScheduleInfo {
  std::string_view name;
  std::string_view summary;     ///< one line
  std::string_view source;      ///< paper or program, and where in it the rules stand
  bool chooses_memory = false;  ///< picks the strategy of every pair; else one mode for all
  bool split_backward = false;  ///< runs I and W instead of B
  bool shards_weights = false;  ///< no pipeline: every GPU is a replica (ZeRO-3)
  bool needs_encoder = false;   ///< refuses models without a module that feeds another one
  int default_chunks = 1;       ///< per rank; 0: the schedule decides
  /// Keys of its options (experiment/schedule_choice.cpp). Those that choose memory have the keys
  /// of `dip` instead.
  std::vector<std::string_view> option_keys{"chunks", "partition", "recompute"};
  /// Ways to run it that are worth trying under one recompute mode, in order of preference among
  /// equally fast ones, at least one; what `asked` sets stays. Null: `asked` alone.
  std::vector<PlannerOptions> (*alternatives)(const PlannerOptions& asked,
                                              const Problem& problem) = nullptr;
  /// Throws Input on options that the schedule's rules forbid.
  std::unique_ptr<Planner> (*make)(const PlannerOptions& options) = nullptr;
};

/// In the order in which they are listed to users.
std::span<const ScheduleInfo> all_schedules();

/// Throws Input, naming the nearest, where there is no schedule of this name.
const ScheduleInfo& find_schedule(std::string_view name);

}  // namespace dipsim
