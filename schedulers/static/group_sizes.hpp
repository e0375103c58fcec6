// SPDX-License-Identifier: Apache-2.0
// How many GPUs each module gets when modules have GPUs of their own.
#pragma once

#include "sim/core/ids.hpp"
#include "sim/core/units.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace dipsim {

/// One way to run a module, and what it takes per step: F and B.
struct GroupOption {
  ModuleGroup group;
  Duration slowest{0};  ///< of its stages
  Duration all{0};      ///< its stages one after the other
};

/// Modules in topological order, as many rows as modules.
struct SizingProblem {
  std::vector<std::vector<GroupOption>> options;
  std::vector<std::vector<ModuleId>> inputs;
  int gpus = 0;  ///< of all groups together, exactly
  int steps = 1;
};

/// Time of the joined pipeline with one option per module:
///
///   Σ over the stages of the longest way through the modules + (steps − 1) · slowest stage
///
/// which is what 1F1B takes on equal steps without transfers (DistTrain, arXiv 2408.04275, problem
/// formulation: warm-up and steady phase).
Duration joined_time(const SizingProblem& problem, std::span<const std::size_t> chosen);

/// The options with the least joined_time() whose GPUs add up, one row per module; the
/// lexicographically first among equals. None where no combination adds up. `fits` may refuse a
/// combination; it is asked for those only that would be better than what was found so far.
std::optional<std::vector<std::size_t>> best_sizes(
    const SizingProblem& problem,
    const std::function<bool(std::span<const std::size_t>)>& fits = {});

}  // namespace dipsim
