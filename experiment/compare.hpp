// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/setup.hpp"
#include "experiment/spec.hpp"
#include "sim/graph/results.hpp"

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>

namespace dipsim {

struct RunControl {
  std::size_t jobs = 0;       ///< threads; 0: all cores
  std::stop_token stop = {};  ///< ends soon, without what is running
  /// (done, total) plans of one replica, over all iterations, schedules and their variants; from
  /// any thread.
  std::function<void(std::size_t, std::size_t)> progress = {};
  /// (schedule, placements tried so far) while schedules are placed, before any progress; from any
  /// thread.
  std::function<void(const std::string&, std::size_t)> placing = {};
};

/// Runs every schedule on every iteration. The result does not depend on `control`, except that a
/// stop leaves only the iterations that every schedule has finished; before that is one, the first
/// iteration with the schedules that have finished it. The sample iteration is the representative
/// one; where a stop leaves that out, the first. Throws Input or Infeasible when a schedule can't
/// plan, and Internal when a timeline beats its lower bound.
Comparison compare(const ExperimentSpec& spec, const Setup& setup, const RunControl& control);

}  // namespace dipsim
