// SPDX-License-Identifier: Apache-2.0
// Random multimodal models and a batch for them: what the properties of the planners are checked
// on.
#pragma once

#include "sim/graph/batch.hpp"
#include "tests/support/random_costs.hpp"

#include <cstddef>
#include <cstdint>

namespace dipsim::test {

struct RandomProblem {
  RandomCosts costs;
  Batch batch;
};

/// Problem number `index` of the sequence `seed`; equal arguments give equal problems.
///
///  - 1 to 4 modules of any acyclic graph: chains, encoders that feed one backbone, these with a
///    decoder behind, diamonds, or any inputs at all. 1 to 6 ranks, 1 to 3 replicas, 1 to 12
///    microbatches per replica, in 1 of 10 problems not the same number on each. Each module has a
///    layer per rank and up to twice as many more, rarely too few.
///  - In 2 of 5 problems all modules are trained, else each one or not, so that all patterns occur:
///    frozen encoders under trained backbones, frozen backbones behind trained encoders, nothing
///    trained at all.
///  - A module has on each microbatch 0 to 13 instances (slices have 4 and more), one, or none on
///    any. Their lengths differ in half of the problems.
///  - Zero and equal times are frequent; in 1 of 8 problems ranks differ in speed. Transfers are
///    free, have latency, or latency and occupation.
///  - Every number of RandomModule is 0 often.
RandomProblem random_problem(std::uint64_t seed, std::size_t index);

}  // namespace dipsim::test
