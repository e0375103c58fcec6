// SPDX-License-Identifier: Apache-2.0
// What one GPU executes for a part of a layer: lists of operators, and the tensors that it keeps.
#pragma once

#include "models/placed_module.hpp"
#include "models/work_shape.hpp"
#include "sim/cluster/kernel_time.hpp"
#include "sim/cluster/network_time.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace dipsim {

/// A kernel bound by memory: bytes read and written.
struct MemoryTraffic {
  std::int64_t bytes = 0;
};

/// Who takes part in a collective inside a layer.
enum class ParallelGroup : std::uint8_t { Tensor, Context, Expert };

/// A collective inside a layer; bytes of the gathered tensor, or what each GPU sends to all.
struct GroupTraffic {
  CollectiveKind kind = CollectiveKind::AllGather;
  std::int64_t bytes = 0;
  ParallelGroup group = ParallelGroup::Tensor;
};

struct Operator {
  std::string_view name;  ///< "qkv", "attention", …
  std::variant<GemmShape, AttentionShape, MemoryTraffic, GroupTraffic> shape;
};

/// FLOPs of matrix products and attention; 0 for the others.
double flops_of(const Operator& op);

/// A tensor that forward keeps for backward, per GPU.
struct SavedTensor {
  std::string_view name;
  std::int64_t bytes = 0;
  bool cheap = false;             ///< dropped and recomputed by selective recomputation
  bool for_weights_only = false;  ///< the input gradient does without it
};

/// One part of a layer on one GPU. Lists stand in order of execution.
struct PartOperators {
  std::vector<Operator> forward;
  std::vector<Operator> selective;  ///< forward operators that selective recomputation runs again
  std::vector<Operator> input_gradient;
  std::vector<Operator> weight_gradient;
  std::vector<SavedTensor> saved;
  std::int64_t layer_input = 0;       ///< bytes; all that full recomputation keeps
  std::int64_t held_for_weights = 0;  ///< bytes from I to W: inputs and output gradients of weights
  std::int64_t transient = 0;         ///< bytes of scratch while a pass runs
};

/// Operators of a part of this module. Tensor parallelism with sequence parallelism (Korthikanti et
/// al., arXiv 2205.05198 §4): tokens are sharded between the matrix products and gathered for them;
/// without it all GPUs hold them all, and partial results are added up (arXiv 1909.08053 §3).
/// The all-gather that W needs is hidden behind the input-gradient product and not listed.
///
/// Selective recomputation runs again what is cheap: norms and activation functions where attention
/// is fused; the attention core where it is not (arXiv 2205.05198 §5).
/// `shape` is that of the whole context-parallel group.
PartOperators operators_of(const PlacedModule& module, Part part, const WorkShape& shape,
                           LayerKind kind = {});

}  // namespace dipsim
