// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dipsim {

/// Bytes per parameter during training. The defaults: bf16 weights, gradients added up in fp32 and
/// Adam (Megatron-LM README, "distributed optimizer": 6 + 12/d).
struct TrainingState {
  double weights = 2.0;
  double gradients = 4.0;
  double optimizer = 12.0;  ///< fp32 copy of the weights and two moments
  double gathered = 2.0;    ///< sent per weight that the replicas gather
  double reduced = 4.0;     ///< sent per gradient that the replicas reduce
  /// Moved by an optimizer step: Adam reads gradient, moments and fp32 weights (16), writes
  /// moments, fp32 and bf16 weights (14).
  double step_traffic = 30.0;
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

}  // namespace dipsim
