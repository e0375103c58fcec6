// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/balance.hpp"

#include "schedulers/partition.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace dipsim::dip {

namespace {

class Balancer {
 public:
  Balancer(const Lowering& lowering, const Batch& batch, PartitionPlan& plan, double ramp)
      : plan_(plan),
        depth_(static_cast<std::size_t>(lowering.problem().depth())),
        load_(depth_, 0) {
    const std::vector<std::int64_t> times = layer_times(lowering, batch, RecomputeMode::Keep);
    std::size_t first = 0;
    for (std::size_t m = 0; m < plan.modules.size(); ++m) {
      const auto layers = static_cast<std::size_t>(lowering.problem().modules[m].layers);
      add_module(plan.modules[m], std::span(times).subspan(first, layers));
      first += layers;
    }
    // Loads are sums over all replicas.
    const double per_rank = ramp * lowering.problem().replicas *
                            static_cast<double>(longest_chunk_) /
                            static_cast<double>(std::max<std::size_t>(1, batch.microbatches()));
    for (std::size_t rank = 0; rank < depth_; ++rank) {
      load_[rank] += static_cast<std::int64_t>(static_cast<double>(rank) * per_rank);
    }
  }

  void run() {
    while (improve()) {
    }
  }

 private:
  /// Its loads, and the time of a plain layer: the median, since embedding and head, which stay on
  /// their chunks, belong to the first and the last layer.
  void add_module(ModulePlan& module, std::span<const std::int64_t> times) {
    module.layers =
        even_layers(static_cast<int>(times.size()), static_cast<int>(depth_) * module.segments);
    std::vector<std::int64_t> sorted(times.begin(), times.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    layer_time_.push_back(*middle);
    longest_chunk_ = std::max(longest_chunk_, *middle * module.layers.front());
    std::size_t layer = 0;
    for (std::size_t c = 0; c < module.layers.size(); ++c) {
      const auto count = static_cast<std::size_t>(module.layers[c]);
      const auto own = times.subspan(layer, count);
      load_[c % depth_] = std::accumulate(own.begin(), own.end(), load_[c % depth_]);
      layer += count;
    }
  }

  /// The chunk of the module on this rank that has the most (or fewest) layers.
  [[nodiscard]] std::size_t chunk_of(const ModulePlan& module, std::size_t rank, bool most) const {
    std::size_t found = rank;
    for (std::size_t c = rank; c < module.layers.size(); c += depth_) {
      const bool more = module.layers[c] > module.layers[found];
      const bool fewer = module.layers[c] < module.layers[found];
      found = (most ? more : fewer) ? c : found;
    }
    return found;
  }

  /// The move off the fullest rank after which the fuller of the two ranks has least.
  bool improve() {
    const auto from = static_cast<std::size_t>(std::ranges::max_element(load_) - load_.begin());
    std::int64_t least = load_[from];
    std::size_t best_module = 0;
    std::size_t best_rank = from;
    for (std::size_t m = 0; m < plan_.modules.size(); ++m) {
      const ModulePlan& module = plan_.modules[m];
      const std::int64_t time = layer_time_[m];
      if (time == 0 || module.layers[chunk_of(module, from, true)] < 2) {
        continue;
      }
      for (std::size_t to = 0; to < depth_; ++to) {
        const std::int64_t fuller = std::max(load_[from] - time, load_[to] + time);
        if (to != from && fuller < least) {
          least = fuller;
          best_module = m;
          best_rank = to;
        }
      }
    }
    if (best_rank == from) {
      return false;
    }
    ModulePlan& module = plan_.modules[best_module];
    --module.layers[chunk_of(module, from, true)];
    ++module.layers[chunk_of(module, best_rank, false)];
    load_[from] -= layer_time_[best_module];
    load_[best_rank] += layer_time_[best_module];
    return true;
  }

  PartitionPlan& plan_;
  std::size_t depth_;
  std::vector<std::int64_t> load_;        ///< per rank
  std::vector<std::int64_t> layer_time_;  ///< per module
  std::int64_t longest_chunk_ = 0;        ///< without embedding and head, on the whole batch
};

}  // namespace

void balance_layers(const Lowering& lowering, const Batch& representative, PartitionPlan& plan,
                    double ramp) {
  Balancer(lowering, representative, plan, ramp).run();
}

}  // namespace dipsim::dip
