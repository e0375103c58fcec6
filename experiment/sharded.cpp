// SPDX-License-Identifier: Apache-2.0
#include "experiment/sharded.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace dipsim {

ParallelPlan sharded_plan(const ParallelPlan& plan) {
  ParallelPlan sharded = plan;
  sharded.tp = 1;
  sharded.pp = 1;
  sharded.dp = plan.tp * plan.pp * plan.dp;
  sharded.zero = 3;
  return sharded;
}

std::vector<Microbatch> deal_evenly(std::span<const Microbatch> microbatches,
                                    std::span<const double> flops, std::size_t replicas) {
  const std::size_t count = microbatches.size();
  if (count % replicas != 0) {
    const std::size_t below = count / replicas * replicas;
    fail_input("microbatches",
               fmt::format("{} over all replicas, but fsdp gives each of {} GPUs equally many; "
                           "nearest legal: {}{}",
                           count, replicas, below > 0 ? fmt::format("{} or ", below) : "",
                           below + replicas));
  }
  std::vector<std::size_t> heaviest(count);
  std::iota(heaviest.begin(), heaviest.end(), std::size_t{0});
  std::ranges::stable_sort(heaviest, std::ranges::greater{},
                           [&](std::size_t i) { return flops[i]; });
  std::vector<Microbatch> dealt;
  dealt.reserve(count);
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    for (std::size_t place = replica; place < count; place += replicas) {
      dealt.push_back(microbatches[heaviest[place]]);
    }
  }
  return dealt;
}

}  // namespace dipsim
