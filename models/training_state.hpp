// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

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
  /// Weights of transformer blocks, where they differ from those of embeddings and heads (fp8).
  std::optional<double> block_weights{};
  /// Held per trained parameter of a share while the optimizer steps: fp32 copies of gradients that
  /// were added up in 16 bits (Megatron-LM, DistributedOptimizer::_copy_model_grads_to_main_grads).
  double step_scratch = 0.0;
  /// The same of the larger of two groups, parameters outside experts and in experts, which step
  /// one after the other: fp32 copies of moments that are kept in 16 bits (TransformerEngine,
  /// FusedAdam::get_unscaled_state; pull request 1640).
  double group_scratch = 0.0;
  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

}  // namespace dipsim
