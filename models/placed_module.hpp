// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/model.hpp"
#include "models/work_shape.hpp"
#include "sim/graph/task_graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace dipsim {

/// What rides on a layer: every layer has a block, the first and the last have something more.
enum class Part : std::uint8_t {
  First,  ///< token or patch embedding; DiT: also context projection and adaLN-single
  Block,  ///< one transformer block
  Last,   ///< final norm, projector, language-model head and loss, or DiT output layer
};

/// A module with everything around it that its costs depend on.
struct PlacedModule {
  ModuleSpec spec;
  AttentionMask mask = AttentionMask::Full;
  bool head = false;
  bool trained = true;
  bool backward = true;   ///< a gradient passes through: it is trained, or something upstream is
  int merge = 1;          ///< encoder tokens per token that the projector hands on
  int output_width = 0;   ///< of the tokens handed on
  int context_width = 0;  ///< of the prompt that a DiT attends to; else 0
  int tp = 1;
  bool sequence_parallel = true;
  bool async_tp = false;
  int cp = 1;
  int ep = 1;
  ContextExchange context = ContextExchange::Ring;

  // Of one GPU. Key/value heads are copied where there are fewer of them than GPUs.
  [[nodiscard]] int local_heads() const { return spec.heads / tp; }

  [[nodiscard]] std::int64_t local_query_width() const {
    return std::int64_t{local_heads()} * spec.head_dim;
  }

  [[nodiscard]] std::int64_t local_kv_width() const {
    return std::int64_t{(spec.kv_groups + tp - 1) / tp} * spec.head_dim;
  }

  [[nodiscard]] std::int64_t local_value_width() const {
    return std::int64_t{(spec.kv_groups + tp - 1) / tp} * spec.value_width();
  }

  /// Width of what attention hands on.
  [[nodiscard]] std::int64_t local_attention_width() const {
    return std::int64_t{local_heads()} * spec.value_width();
  }

  [[nodiscard]] int local_experts() const { return spec.experts.count / ep; }

  [[nodiscard]] std::int64_t local_ffn() const { return spec.ffn / tp; }

  [[nodiscard]] std::int64_t local_vocabulary() const { return (spec.vocabulary + tp - 1) / tp; }
};

/// The modules of a checked model under this plan; with groups, one per module, each at the
/// tensor-parallel degree of its own.
std::vector<PlacedModule> place_modules(const LmmModel& model, const ParallelPlan& plan,
                                        std::span<const ModuleGroup> groups = {});

/// Parameters of one part of a module.
struct ParameterCount {
  double dense = 0.0;    ///< shared out over tp
  double experts = 0.0;  ///< shared out over ep
  double trained_dense = 0.0;
  double trained_experts = 0.0;

  [[nodiscard]] double all() const { return dense + experts; }
};

/// Parameters of the weight matrices; norms and biases, below 0.1 % of them, are left out, and so
/// are low-rank adapters except as what is trained of a module that has them.
ParameterCount count_parameters(const PlacedModule& module, Part part, LayerKind kind = {});

/// All of them.
double parameters_of(const PlacedModule& module, Part part, LayerKind kind = {});

/// Parameters of every layer, first and last parts included.
std::vector<double> layer_parameters(const PlacedModule& module);

/// Parameters that one token meets, as model cards count them: the chosen experts, and the head but
/// no token embedding.
double active_parameters(const PlacedModule& module);

/// Useful FLOPs of a forward pass through all layers: matrix products and counted attention.
double forward_flops(const PlacedModule& module, const WorkShape& shape);

/// The same of low-rank adapters alone.
double adapter_flops(const PlacedModule& module, const WorkShape& shape);

/// The same of one transformer block.
double block_forward_flops(const PlacedModule& module, const WorkShape& shape, LayerKind kind = {});

}  // namespace dipsim
