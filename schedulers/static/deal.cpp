// SPDX-License-Identifier: Apache-2.0
#include "schedulers/static/deal.hpp"

#include "sim/graph/schedule.hpp"

#include <algorithm>
#include <cstddef>

namespace dipsim {

namespace {

struct Item {
  MicrobatchId microbatch;
  int instance = 0;
  std::int64_t time = 0;
};

/// Runs of consecutive instances of one microbatch.
std::vector<Portion> portions_of(std::vector<Item>& items) {
  std::ranges::sort(items, {},
                    [](const Item& item) { return std::pair(item.microbatch, item.instance); });
  std::vector<Portion> portions;
  for (const Item& item : items) {
    if (!portions.empty() && portions.back().microbatch == item.microbatch &&
        portions.back().first + portions.back().count == item.instance) {
      ++portions.back().count;
    } else {
      portions.push_back({.microbatch = item.microbatch, .first = item.instance, .count = 1});
    }
  }
  return portions;
}

}  // namespace

std::vector<std::vector<MicrobatchStep>> steps_of(const Batch& batch, int replicas,
                                                  int microbatches) {
  std::vector<std::vector<MicrobatchStep>> steps(static_cast<std::size_t>(replicas));
  for (std::size_t m = 0; m < batch.microbatches(); ++m) {
    std::vector<MicrobatchStep>& own = steps[static_cast<std::size_t>(batch.replica[m])];
    if (own.empty() || own.back().size() == static_cast<std::size_t>(microbatches)) {
      own.emplace_back();
    }
    own.back().emplace_back(m);
  }
  return steps;
}

std::int64_t InstanceTimes::of(MicrobatchId microbatch, ModuleId module, int instance) {
  const Instance& one = batch_.of(microbatch, module)[static_cast<std::size_t>(instance)];
  std::vector<std::int64_t> key = {module.value, one.tokens, one.output_tokens, one.context_tokens};
  const auto groups = batch_.groups_of(one);
  key.insert(key.end(), groups.begin(), groups.end());
  const auto [entry, is_new] = known_.try_emplace(std::move(key), 0);
  if (is_new) {
    const LayerRange all{
        .module = module, .first = 0, .count = lowering_.problem().modules[module.row()].layers};
    const Work work{.replica = batch_.replica[microbatch.row()],
                    .module = module,
                    .portions = {{.microbatch = microbatch, .first = instance, .count = 1}}};
    const auto strategies = lowering_.costs(std::span(&all, 1), work, batch_);
    const Strategy& strategy = strategies[uniform_strategy(strategies, mode_)];
    entry->second = (strategy.f + strategy.b).count();
  }
  return entry->second;
}

std::vector<std::vector<Portion>> deal(const Batch& batch, const MicrobatchStep& step,
                                       ModuleId module, int copies, InstanceTimes& times) {
  std::vector<Item> longest;
  for (const MicrobatchId microbatch : step) {
    const auto count = static_cast<int>(batch.of(microbatch, module).size());
    for (int instance = 0; instance < count; ++instance) {
      longest.push_back({microbatch, instance, times.of(microbatch, module, instance)});
    }
  }
  std::ranges::stable_sort(longest, std::ranges::greater{}, &Item::time);
  std::vector<std::vector<Item>> dealt(static_cast<std::size_t>(copies));
  std::vector<std::pair<std::int64_t, std::size_t>> loads(dealt.size());  // and instances
  for (const Item& item : longest) {
    const auto least = std::ranges::min_element(loads);
    dealt[static_cast<std::size_t>(least - loads.begin())].push_back(item);
    least->first += item.time;
    ++least->second;
  }
  std::vector<std::vector<Portion>> portions;
  for (std::vector<Item>& items : dealt) {
    portions.push_back(portions_of(items));
  }
  return portions;
}

}  // namespace dipsim
