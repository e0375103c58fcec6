// SPDX-License-Identifier: Apache-2.0
// One replica of a task graph in the flat form that the interleaver, the memory choice and the
// re-timing run on thousands of times.
#pragma once

#include "sim/graph/task_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dipsim::dip {

/// Row number inside one ReplicaGraph: of a pass, pair, rank, group or component.
using Index = std::uint32_t;

/// Nanoseconds and bytes as plain integers, for the inner loops.
using Nanoseconds = std::int64_t;
using ByteCount = std::int64_t;

/// What a pair costs and holds under one of its strategies, on its own rank. `backward` is B, or I
/// where the backward is split; `weight` is W then. (W alone, where nothing upstream wants a
/// gradient, is a backward.)
struct PairOption {
  Nanoseconds forward = 0;
  Nanoseconds backward = 0;
  Nanoseconds weight = 0;
  RecomputeMode mode = RecomputeMode::Keep;
  Index strategy = 0;     ///< row among the allowed strategies of the pair
  ByteCount held = 0;     ///< from the start of the forward to the end of the backward
  ByteCount rebuilt = 0;  ///< during the backward
  ByteCount kept = 0;     ///< from the end of the backward to the end of W
  friend bool operator==(const PairOption&, const PairOption&) = default;

  [[nodiscard]] Nanoseconds time() const { return forward + backward + weight; }
};

/// A strategy that offloads. The searches don't use it; what follows them may (offload.hpp).
struct OffloadOption {
  PairOption option;
  Nanoseconds out = 0;  ///< time of the copy to host memory
  Nanoseconds in = 0;   ///< and back
  ByteCount away = 0;   ///< part of option.held that is copied
  friend bool operator==(const OffloadOption&, const OffloadOption&) = default;
};

/// Whether W takes as long and holds as much under both.
inline bool same_weight(const PairOption& a, const PairOption& b) {
  return a.weight == b.weight && a.kept == b.kept;
}

/// How data reach `to` after a pass.
struct Hop {
  static constexpr Index kDirect = 0xFFFFFFFF;  ///< same rank: at the end of the pass
  static constexpr Index kShared = 0xFFFFFFFE;  ///< with the transfer of the hop before

  Index to = 0;
  Index link = kDirect;  ///< kDirect, kShared, or the ordered pair of ranks that carries it
  Nanoseconds occupied = 0;
  Nanoseconds latency = 0;
  friend bool operator==(const Hop&, const Hop&) = default;
};

struct Pass {
  Index rank = 0;
  Index pair = 0;
  Index first_hop = 0;
  Index last_hop = 0;
  Index predecessors = 0;
  friend bool operator==(const Pass&, const Pass&) = default;
};

/// The works of one module on one microbatch: they share a priority.
struct Group {
  MicrobatchId microbatch;
  ModuleId module;
  Index first_forward = 0;  ///< its forward passes are [first_forward, last_forward)
  Index last_forward = 0;
  Index first_backward = 0;
  Index last_backward = 0;
};

enum class PassKind : std::uint8_t { Forward, Backward, Weight };

/// Numbering: pass p < pair_count() is the forward of pair p; backward passes (B or I) follow, then
/// weight passes (W, where the backward is split), in the order of their backwards. Groups stand in
/// natural order (by microbatch, inside it encoders first), and the passes of a direction group by
/// group in the fixed internal order: slice by slice, forward along and backward against the flow.
struct ReplicaGraph {
  int replica = 0;
  std::vector<RankId> ranks;     ///< per rank: its row in the task graph
  std::vector<ByteCount> room;   ///< per rank: memory limit minus what it always holds
  std::vector<TaskId> tasks;     ///< per pass
  std::vector<PairId> pairs;     ///< per pair
  std::vector<Pass> passes;      ///< pair_count() forwards, then the backwards, then the W
  std::size_t first_weight = 0;  ///< passes from this one on are W
  std::vector<Hop> hops;
  std::size_t links = 0;
  std::vector<ChunkId> chunk;        ///< per pair
  std::vector<ByteCount> transient;  ///< per pass: extra memory while it runs
  std::vector<Index> backward;       ///< per pair: its backward pass (B or I), or kNone
  std::vector<Index> weight;         ///< per pair: its W, or kNone
  std::vector<Index> first_option;   ///< per pair: its first strategy in `options`
  std::vector<Index> option_count;   ///< per pair
  std::vector<PairOption> options;   ///< pairs of equal cost share a run of these
  std::vector<OffloadOption> offload_options;
  std::vector<Index> first_offload;  ///< per pair: its first one in `offload_options`
  std::vector<Index> offload_count;  ///< per pair
  std::vector<Group> groups;
  std::vector<Index> component;  ///< per pair: pairs that edges connect, i.e. one microbatch
  std::size_t components = 0;

  static constexpr Index kNone = 0xFFFFFFFF;

  [[nodiscard]] std::size_t pair_count() const { return pairs.size(); }

  [[nodiscard]] bool is_forward(Index pass) const { return pass < pairs.size(); }

  [[nodiscard]] bool is_weight(Index pass) const { return pass >= first_weight; }

  [[nodiscard]] PassKind kind(Index pass) const {
    return is_forward(pass) ? PassKind::Forward
                            : (is_weight(pass) ? PassKind::Weight : PassKind::Backward);
  }

  [[nodiscard]] std::span<const PairOption> options_of(Index pair) const {
    return {options.data() + first_option[pair], option_count[pair]};
  }

  [[nodiscard]] std::span<const OffloadOption> offloads_of(Index pair) const {
    return {offload_options.data() + first_offload[pair], offload_count[pair]};
  }
};

/// One per replica, by replica number. Throws Input on what DIP does not schedule: ranks of several
/// cells or sharing one, tasks other than transfers before a pass, edges between the passes of
/// different replicas.
std::vector<ReplicaGraph> replica_graphs(const TaskGraph& graph);

/// For each replica the first one that asks the same of a planner: equal in everything but its
/// names (ranks, tasks, pairs, and the numbers that chunks and microbatches begin with), so that
/// the plan of the one is, row by row, the plan of the other.
std::vector<std::size_t> first_equal(std::span<const ReplicaGraph> replicas);

}  // namespace dipsim::dip
