// SPDX-License-Identifier: Apache-2.0
#include "models/flows.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace dipsim {

namespace {

/// Per module: whether a gradient must arrive at it.
std::vector<bool> modules_with_backward(const CostSource& costs) {
  const auto& modules = costs.problem().modules;
  std::vector<bool> backward(modules.size());
  for (std::size_t i = 0; i < modules.size(); ++i) {  // topological order: inputs come first
    backward[i] = costs.trains(ModuleId{i}) ||
                  std::ranges::any_of(modules[i].inputs,
                                      [&](ModuleId input) { return backward[input.row()]; });
  }
  return backward;
}

std::string name_of_work(const Draft& draft, std::size_t work, const Problem& problem) {
  const ModuleId module = draft.works[work].module;
  return module.valid()
             ? fmt::format("work {} of module {}", work, problem.modules[module.row()].name)
             : fmt::format("work {}", work);
}

/// The chunks that a work passes, checked to hold every layer of its modules once and in order.
class StopFinder {
 public:
  StopFinder(const Draft& draft, const CostSource& costs)
      : draft_(draft), costs_(costs), backward_(modules_with_backward(costs)) {
    for (std::size_t c = 0; c < draft.placement.chunks.size(); ++c) {
      const Chunk& chunk = draft.placement.chunks[c];
      const int replica = draft.placement.ranks[chunk.rank.row()].replica;
      chunks_[{replica, chunk.copy}].emplace_back(c);
    }
  }

  std::vector<Stop> stops_of(std::size_t work) {
    const Work& w = draft_.works[work];
    std::vector<Stop> stops;
    std::vector<int> next_layer(costs_.problem().modules.size(), 0);
    for (const ChunkId id : chunks_of(w.replica, w.copy)) {
      const Chunk& chunk = draft_.placement.chunks[id.row()];
      Stop stop{.chunk = id, .rank = chunk.rank, .layers = {}};
      for (const LayerRange& range : chunk.layers) {
        if (!w.module.valid() || range.module == w.module) {
          check_next(range, next_layer[range.module.row()], work, id.row());
          next_layer[range.module.row()] += range.count;
          stop.layers.push_back(range);
        }
      }
      if (!stop.layers.empty()) {
        finish(stop);
        stops.push_back(std::move(stop));
      }
    }
    check_complete(w, work, next_layer);
    return stops;
  }

  [[nodiscard]] std::int32_t layer_sets() const { return layer_sets_.size(); }

 private:
  [[nodiscard]] std::span<const ChunkId> chunks_of(int replica, int copy) const {
    const auto found = chunks_.find({replica, copy});
    return found == chunks_.end() ? std::span<const ChunkId>{} : found->second;
  }

  void finish(Stop& stop) {
    std::vector<std::int64_t> key;
    for (const LayerRange& range : stop.layers) {
      stop.backward = stop.backward || backward_[range.module.row()];
      stop.weights = stop.weights || costs_.trains(range.module);
      key.insert(key.end(), {range.module.value, range.first, range.count});
    }
    stop.layer_set = layer_sets_.of(key);
  }

  void check_next(const LayerRange& range, int expected, std::size_t work,
                  std::size_t chunk) const {
    if (range.first != expected) {
      fail_input(fmt::format("placement: chunk {}", chunk),
                 fmt::format("{} reaches layer {} of module {}, but layer {} comes next",
                             name_of_work(draft_, work, costs_.problem()), range.first,
                             costs_.problem().modules[range.module.row()].name, expected));
    }
  }

  void check_complete(const Work& w, std::size_t work, const std::vector<int>& next_layer) const {
    const auto& modules = costs_.problem().modules;
    for (std::size_t i = 0; i < modules.size(); ++i) {
      const bool passed = !w.module.valid() || w.module.row() == i;
      if (passed && next_layer[i] != modules[i].layers) {
        fail_input("placement",
                   fmt::format("{} finds {} of the {} layers of module {} on the chunks of replica "
                               "{}, copy {}",
                               name_of_work(draft_, work, costs_.problem()), next_layer[i],
                               modules[i].layers, modules[i].name, w.replica, w.copy));
      }
    }
  }

  const Draft& draft_;
  const CostSource& costs_;
  std::vector<bool> backward_;
  std::map<std::pair<int, int>, std::vector<ChunkId>>
      chunks_;  ///< by (replica, copy), in flow order
  Numbering layer_sets_;
};

void append_instances(std::vector<std::int64_t>& key, const Batch& batch,
                      std::span<const Instance> instances) {
  key.push_back(static_cast<std::int64_t>(instances.size()));
  for (const Instance& instance : instances) {
    key.insert(key.end(), {instance.tokens, instance.output_tokens, instance.context_tokens,
                           instance.group_count});
    const auto groups = batch.groups_of(instance);
    key.insert(key.end(), groups.begin(), groups.end());
  }
}

/// Everything that the cost of a work depends on.
std::vector<std::int64_t> shape_key(const Work& work, const Batch& batch) {
  std::vector<std::int64_t> key{work.module.value};
  for (const Portion& portion : work.portions) {
    if (work.module.valid()) {
      append_instances(key, batch,
                       batch.of(portion.microbatch, work.module)
                           .subspan(static_cast<std::size_t>(portion.first),
                                    static_cast<std::size_t>(portion.count)));
      continue;
    }
    for (std::size_t module = 0; module < batch.modules; ++module) {
      append_instances(key, batch, batch.of(portion.microbatch, ModuleId{module}));
    }
  }
  return key;
}

std::vector<Link> find_links(const Draft& draft, const Problem& problem) {
  using Entry = std::tuple<int, ModuleId, MicrobatchId, WorkId>;  // iteration first
  std::vector<Entry> holders;
  for (std::size_t w = 0; w < draft.works.size(); ++w) {
    const Work& work = draft.works[w];
    for (const Portion& portion : work.portions) {
      holders.emplace_back(work.iteration, work.module, portion.microbatch, WorkId{w});
    }
  }
  std::ranges::sort(holders);

  std::vector<Link> links;
  std::vector<WorkId> feeding;
  for (std::size_t w = 0; w < draft.works.size(); ++w) {
    const Work& work = draft.works[w];
    if (!work.module.valid()) {
      continue;
    }
    feeding.clear();
    for (const ModuleId input : problem.modules[work.module.row()].inputs) {
      for (const Portion& portion : work.portions) {
        const Entry first{work.iteration, input, portion.microbatch, WorkId{}};
        for (auto it = std::ranges::lower_bound(holders, first);
             it != holders.end() && std::get<1>(*it) == input &&
             std::get<2>(*it) == portion.microbatch && std::get<0>(*it) == work.iteration;
             ++it) {
          feeding.push_back(std::get<3>(*it));
        }
      }
    }
    std::ranges::sort(feeding);
    const auto repeated = std::ranges::unique(feeding);
    feeding.erase(repeated.begin(), repeated.end());
    for (const WorkId from : feeding) {
      links.push_back({from, WorkId{w}});
    }
  }
  return links;
}

}  // namespace

Flows find_flows(const Draft& draft, const Batch& batch, const CostSource& costs) {
  Flows found;
  StopFinder finder(draft, costs);
  std::map<std::tuple<int, int, ModuleId>, std::int32_t> flow_of;
  Numbering shapes;
  for (std::size_t w = 0; w < draft.works.size(); ++w) {
    const Work& work = draft.works[w];
    DIPSIM_CHECK(work.sequence_piece == 0, "pieces of sequences are not lowered");
    const auto [entry, is_new] = flow_of.try_emplace({work.replica, work.copy, work.module},
                                                     static_cast<std::int32_t>(found.flows.size()));
    if (is_new) {
      found.flows.emplace_back().stops = finder.stops_of(w);
    }
    Flow& flow = found.flows[static_cast<std::size_t>(entry->second)];
    found.places.push_back(
        {.flow = entry->second, .position = static_cast<std::int32_t>(flow.works.size())});
    flow.works.emplace_back(w);
    found.shape.push_back(shapes.of(shape_key(work, batch)));
  }
  found.links = find_links(draft, costs.problem());
  found.layer_sets = finder.layer_sets();
  found.shapes = shapes.size();
  return found;
}

}  // namespace dipsim
