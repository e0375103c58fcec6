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
  sharded.cp = 1;
  sharded.dp = plan.rank_gpus() * plan.pp * plan.dp;
  sharded.zero = 3;
  return sharded;
}

std::vector<Microbatch> deal_evenly(std::span<const Microbatch> microbatches,
                                    std::span<const double> flops, std::size_t replicas,
                                    std::size_t pipelines) {
  const std::size_t count = microbatches.size();
  if (count % replicas != 0) {
    const std::size_t gpus = replicas / pipelines;
    const std::size_t below = count / pipelines / gpus * gpus;
    fail_input(
        "microbatches",
        fmt::format("{} per replica, but fsdp gives each of its {} GPUs equally many; nearest "
                    "legal: {}{}",
                    count / pipelines, gpus, below > 0 ? fmt::format("{} or ", below) : "",
                    below + gpus));
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
