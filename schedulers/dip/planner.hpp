// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/options.hpp"
#include "sim/graph/planner.hpp"

#include <memory>

namespace dipsim {

// The three planners share the partitioner, the interleaver and the memory choice
// (docs/model.md, "DIP"). Each replica is planned on its own, several at once on different threads,
// equal ones once. They throw Input on options out of range.

/// DIP as its paper has it (ASPLOS'26, arXiv 2504.14145): segment order by tree search, dual-queue
/// interleaving, memory choice per pair.
std::unique_ptr<Planner> make_dip(const DipOptions& options);

/// DIP with local search over priorities, memory levels and the order of passes.
std::unique_ptr<Planner> make_dip_plus(const DipOptions& options);

/// The same with the backward split into I and W.
std::unique_ptr<Planner> make_dip_zb(const DipOptions& options);

}  // namespace dipsim
