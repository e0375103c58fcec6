// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/batch_evaluator.hpp"
#include "schedulers/dip/compose.hpp"

namespace dipsim::dip {

/// What an order search has found: the candidate and what it gives.
struct Found {
  Candidate candidate;
  Composition composition;
};

}  // namespace dipsim::dip
