// SPDX-License-Identifier: Apache-2.0
// A pipeline given by its pass times, with no model at all.
#pragma once

#include "sim/graph/batch.hpp"
#include "sim/graph/lowering.hpp"

#include <memory>
#include <vector>

namespace dipsim {

/// Times hold one value for all stages, or one per stage (ranks × chunks, in flow order).
struct SyntheticSpec {
  int ranks = 4;
  int microbatches = 8;  ///< per replica
  int chunks = 1;        ///< per rank
  int replicas = 1;      ///< independent copies of the pipeline
  std::vector<Duration> forward{std::chrono::milliseconds(1)};
  std::vector<Duration> backward_input{std::chrono::milliseconds(1)};
  std::vector<Duration> backward_weight{std::chrono::milliseconds(1)};
  Duration p2p_occupied{0};  ///< time for which a transfer occupies its link
  Duration p2p_latency{0};
  Bytes activation{std::int64_t{1} << 20U};             ///< per pass and stage, from F to I (or B)
  Bytes activation_for_weight{std::int64_t{1} << 19U};  ///< held on from I to W
  Bytes memory_limit{static_cast<std::int64_t>(kMaxBytes)};  ///< of each rank
};

/// One module "stage" with a layer per stage; every microbatch is one instance. Ranks hold
/// nothing but activations. Throws Input naming the flag-like field on a count below 1, on more
/// than 10^7 passes (ranks × chunks × microbatches × replicas), on a list of times whose length is
/// neither 1 nor the number of stages, and on negative values or times too long to add up.
std::unique_ptr<Lowering> make_synthetic(const SyntheticSpec& spec);

/// The batch that goes with it.
Batch synthetic_batch(const SyntheticSpec& spec);

}  // namespace dipsim
