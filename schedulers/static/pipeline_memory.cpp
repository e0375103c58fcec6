// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/pipeline_memory.hpp"

#include <algorithm>
#include <cstddef>

namespace dipsim {

std::vector<std::vector<int>> stages_of_ranks(const PipelineInstance& instance) {
  std::vector<std::vector<int>> stages(static_cast<std::size_t>(instance.shape.ranks));
  for (int stage = 0; stage < instance.stage_count(); ++stage) {
    stages[static_cast<std::size_t>(instance.stage(stage).rank)].push_back(stage);
  }
  return stages;
}

void append_needs(const PipelineInstance& instance, std::span<const int> stages, int microbatch,
                  std::vector<Bytes>& needs) {
  const auto first = static_cast<std::ptrdiff_t>(needs.size());
  Bytes held{};
  for (const int stage : stages) {
    const PairCost& cost = instance.cost(stage, microbatch);
    held += cost.held;
    needs.push_back(held + cost.during_forward);
  }
  for (std::size_t s = stages.size(); s-- > 0;) {
    if (instance.stage(stages[s]).has_backward) {
      const PairCost& cost = instance.cost(stages[s], microbatch);
      const Bytes during = held + cost.during_backward;
      held -= cost.held;
      needs.push_back(std::max(during, held + cost.kept + cost.during_weight));
    }
  }
  needs.resize(static_cast<std::size_t>(first) + 2 * stages.size());
  for (auto need = needs.end() - 1; need > needs.begin() + first; --need) {
    *(need - 1) = std::max(*(need - 1), *need);
  }
}

std::vector<Bytes> one_f_one_b_memory(const PipelineInstance& instance, int multiple) {
  std::vector<Bytes> limits;
  const std::vector<std::vector<int>> stages = stages_of_ranks(instance);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    Bytes in_flight{};
    Bytes most_in_flight{};
    Bytes most_on_top{};
    for (int m = 0; m < instance.shape.microbatches; ++m) {
      for (const int stage : stages[rank]) {
        const PairCost& cost = instance.cost(stage, m);
        in_flight += cost.held;
        if (m >= instance.shape.ranks) {
          in_flight -= instance.cost(stage, m - instance.shape.ranks).held;
        }
        most_on_top = std::max({most_on_top, cost.during_forward, cost.during_backward,
                                cost.kept + cost.during_weight - cost.held});
      }
      most_in_flight = std::max(most_in_flight, in_flight);
    }
    limits.push_back(std::min(multiple * most_in_flight + most_on_top, instance.room[rank]));
  }
  return limits;
}

}  // namespace dipsim
