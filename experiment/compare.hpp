// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/setup.hpp"
#include "experiment/spec.hpp"
#include "sim/graph/results.hpp"

#include <cstddef>
#include <functional>
#include <stop_token>

namespace dipsim {

struct RunControl {
  std::size_t jobs = 0;                                    ///< threads; 0: all cores
  std::stop_token stop;                                    ///< ends after the running iterations
  std::function<void(std::size_t, std::size_t)> progress;  ///< (done, total), from any thread
};

/// Runs every schedule on every iteration. The result does not depend on `control`, except that a
/// stop leaves only the iterations that every schedule has finished. Throws Input or Infeasible
/// when a schedule can't plan, and Internal when a timeline beats its lower bound.
Comparison compare(const ExperimentSpec& spec, const Setup& setup, const RunControl& control);

}  // namespace dipsim
