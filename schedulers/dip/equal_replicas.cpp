// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/replica_graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace dipsim::dip {

namespace {

/// Chunks by their distance from the first one: only which are equal, and their order, matters.
bool same_chunks(const ReplicaGraph& a, const ReplicaGraph& b) {
  if (a.chunk.empty() || b.chunk.empty()) {
    return a.chunk.empty() && b.chunk.empty();
  }
  const std::int32_t of_a = std::ranges::min(a.chunk).value;
  const std::int32_t of_b = std::ranges::min(b.chunk).value;
  return std::ranges::equal(a.chunk, b.chunk,
                            [&](ChunkId x, ChunkId y) { return x.value - of_a == y.value - of_b; });
}

bool same_groups(const ReplicaGraph& a, const ReplicaGraph& b) {
  if (a.groups.empty() || b.groups.empty()) {
    return a.groups.empty() && b.groups.empty();
  }
  // Groups stand in the order of their microbatches.
  const std::int32_t of_a = a.groups.front().microbatch.value;
  const std::int32_t of_b = b.groups.front().microbatch.value;
  return std::ranges::equal(a.groups, b.groups, [&](const Group& x, const Group& y) {
    return x.microbatch.value - of_a == y.microbatch.value - of_b && x.module == y.module &&
           x.first_forward == y.first_forward && x.last_forward == y.last_forward &&
           x.first_backward == y.first_backward && x.last_backward == y.last_backward;
  });
}

bool same_problem(const ReplicaGraph& a, const ReplicaGraph& b) {
  return a.passes == b.passes && a.options == b.options && a.hops == b.hops && a.room == b.room &&
         a.first_weight == b.first_weight && a.links == b.links && a.transient == b.transient &&
         a.backward == b.backward && a.weight == b.weight && a.first_option == b.first_option &&
         a.option_count == b.option_count && a.offload_options == b.offload_options &&
         a.first_offload == b.first_offload && a.offload_count == b.offload_count &&
         a.component == b.component && a.components == b.components && same_chunks(a, b) &&
         same_groups(a, b);
}

}  // namespace

std::vector<std::size_t> first_equal(std::span<const ReplicaGraph> replicas) {
  // Replicas of different sizes or times need not be compared.
  std::map<std::tuple<std::size_t, std::size_t, Nanoseconds>, std::vector<std::size_t>> distinct;
  std::vector<std::size_t> first(replicas.size());
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    Nanoseconds sum = 0;
    for (const PairOption& option : replicas[r].options) {
      sum += option.time();
    }
    std::vector<std::size_t>& like =
        distinct[{replicas[r].passes.size(), replicas[r].options.size(), sum}];
    const auto same = std::ranges::find_if(
        like, [&](std::size_t other) { return same_problem(replicas[other], replicas[r]); });
    first[r] = same == like.end() ? r : *same;
    if (same == like.end()) {
      like.push_back(r);
    }
  }
  return first;
}

}  // namespace dipsim::dip
