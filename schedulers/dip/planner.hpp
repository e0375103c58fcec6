// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/options.hpp"
#include "sim/graph/planner.hpp"

#include <memory>

namespace dipsim {

/// DIP (arXiv 2504.14145) in natural order: modality-aware partitioner, dual-queue interleaver and
/// memory choice per pair, tried at every memory level of the options; the least makespan wins.
/// Replicas are planned one by one. Throws Input on options out of range.
std::unique_ptr<Planner> make_dip(const DipOptions& options);

}  // namespace dipsim
