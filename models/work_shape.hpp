// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/model.hpp"
#include "sim/graph/batch.hpp"
#include "sim/graph/task_graph.hpp"

#include <compare>
#include <cstdint>

namespace dipsim {

/// All that the cost of a module depends on, summed over the instances of a work.
struct WorkShape {
  std::int64_t instances = 0;
  std::int64_t tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t context_tokens = 0;
  std::int64_t sequences = 0;       ///< that attend to themselves only
  std::int64_t squares = 0;         ///< Σ s² over these sequences
  std::int64_t cross_products = 0;  ///< Σ tokens · context tokens over instances
  friend auto operator<=>(const WorkShape&, const WorkShape&) = default;
};

/// The instances of `module` that the work holds; a work of no module holds all of its
/// microbatches.
WorkShape shape_of(const Batch& batch, const Work& work, ModuleId module, AttentionMask mask);

/// All instances of `module` in one microbatch.
WorkShape shape_of(const Batch& batch, MicrobatchId microbatch, ModuleId module,
                   AttentionMask mask);

/// Query-key pairs that count: Σ s², half of it under a causal mask (the convention of
/// FlashAttention-2, arXiv 2307.08691 §4).
double counted_pairs(const WorkShape& shape, AttentionMask mask);

/// The same under a causal window of so many keys: Σ min(i, window), exact where all sequences are
/// at least as long as the window, or equally long.
double counted_pairs(const WorkShape& shape, AttentionMask mask, std::int64_t window);

/// What one of `cp` context-parallel GPUs computes: its share of the tokens, and of the pairs of
/// every sequence (each has a piece from the front and one from the back: Llama 3, arXiv 2407.21783
/// §3.3.2).
WorkShape share_of_context(const WorkShape& shape, int cp);

}  // namespace dipsim
