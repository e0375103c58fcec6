// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/dip/replica_graph.hpp"

#include <vector>

namespace dipsim::dip {

/// What runs instead of the interleaver when that is switched off for an ablation: the order of
/// Megatron-LM's interleaved 1F1B (interleaved_steps) on DIP's chunks. A rank's chunks, module by
/// module and segment by segment, are its model chunks; all slices that a microbatch has on a chunk
/// run one after the other in place of the one pass of Megatron's. Returns all passes, following
/// precedence. Throws Input where the microbatches are no multiple of the ranks, which Megatron
/// refuses.
std::vector<Index> megatron_order(const ReplicaGraph& replica);

/// One microbatch after the other: its forwards, then its backwards, each W behind its I. All
/// passes, following precedence. Throws Input where the passes wait for each other in a cycle.
std::vector<Index> sequential_order(const ReplicaGraph& replica);

}  // namespace dipsim::dip
