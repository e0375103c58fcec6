// SPDX-License-Identifier: Apache-2.0
// Mixture of experts in place of the FFN of a block.
#pragma once

#include "models/part_builder.hpp"

namespace dipsim {

/// Norm, router, dispatch, experts, combine, shared experts, residual (arXiv 2401.06066;
/// docs/model.md (13a)). Tokens are those of the shard: with sequence parallelism each GPU of a
/// tensor-parallel group sends its own. Router weights are applied beside the activation function,
/// so that outputs of experts need not be kept.
void add_experts(PartBuilder& builder);

}  // namespace dipsim
