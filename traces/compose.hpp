// SPDX-License-Identifier: Apache-2.0
// The samples of an iteration, dealt anew to its microbatches and replicas.
#pragma once

#include "models/microbatch.hpp"
#include "models/model.hpp"
#include "traces/balance.hpp"

#include <functional>
#include <span>
#include <vector>

namespace dipsim {

/// Work of every module on one sample, which comes as a microbatch of its own: from 0, in one unit.
using SampleWork = std::function<std::vector<double>(const Microbatch& sample)>;

/// Evenness of an iteration: work of its microbatches, and of its replicas.
struct Evenness {
  Unevenness microbatches;
  Unevenness replicas;
};

struct ComposedIteration {
  std::vector<Microbatch> microbatches;
  Evenness packed;  ///< as they came
  Evenness composed;
  bool divisible = false;  ///< a microbatch holds several samples
};

/// Re-assigns the samples (Microbatch::samples) of all replicas to microbatches, then the
/// microbatches to replicas, so that every microbatch and every replica has as equal work in each
/// module as the limits allow: neither deviation grows. Samples stay whole and together; the
/// numbers of microbatches stay, and none becomes empty. A microbatch that is one sample only
/// changes its place.
///
/// Source: OrchMLLM (arXiv 2503.23830) balances the samples of a batch after they are drawn, each
/// modality for itself; Entrain (arXiv 2605.27918) composes microbatches by the work of encoder
/// and backbone; DynaPipe (doi 10.1145/3627703.3629585) anew for every iteration. Here a sample
/// does not leave its microbatch between modules, so one assignment serves all of them.
///
/// `microbatches` are within `limits`, and as many for each of the replicas.
ComposedIteration compose_microbatches(std::span<const Microbatch> microbatches,
                                       const PackingSpec& limits, int replicas,
                                       const SampleWork& work);

}  // namespace dipsim
