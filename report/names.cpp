// SPDX-License-Identifier: Apache-2.0
#include "report/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace dipsim {

namespace {

/// Works with the same key are slices of the same thing.
using SliceKey = std::tuple<int, int, int, std::vector<int>>;

SliceKey slice_key(const Work& work) {
  std::vector<int> microbatches;
  microbatches.reserve(work.portions.size());
  for (const Portion& portion : work.portions) {
    microbatches.push_back(portion.microbatch.value);
  }
  return {work.iteration, work.copy, work.module.value, microbatches};
}

/// a … z, then .26, .27 …
std::string slice_letter(std::size_t index) {
  return index < 26 ? std::string(1, static_cast<char>('a' + index)) : fmt::format(".{}", index);
}

std::string microbatches_text(const Work& work) {
  if (work.portions.empty()) {
    return "";
  }
  const int first = work.portions.front().microbatch.value;
  const int last = work.portions.back().microbatch.value;
  if (first == last) {
    return std::to_string(first);
  }
  return fmt::format("{}{}{}", first, work.portions.size() == 2 ? "+" : "…", last);
}

bool has_replicas(const std::vector<Rank>& ranks) {
  return std::ranges::any_of(ranks, [](const Rank& rank) { return rank.replica > 0; });
}

}  // namespace

TaskNames::TaskNames(const TaskGraph& graph)
    : graph_(graph), several_replicas_(has_replicas(graph.placement.ranks)) {
  name_works();
  name_module_sets();
}

void TaskNames::name_works() {
  std::map<SliceKey, std::size_t> slices;
  for (const Work& work : graph_.works) {
    ++slices[slice_key(work)];
  }
  std::map<SliceKey, std::size_t> seen;
  for (const Work& work : graph_.works) {
    const SliceKey key = slice_key(work);
    std::string name = microbatches_text(work);
    if (slices[key] > 1) {
      name += slice_letter(seen[key]++);
    }
    works_.push_back(work.iteration > 0 ? name + '\'' : name);
  }
}

void TaskNames::name_module_sets() {
  module_sets_ = graph_.module_names;
  for (const Chunk& chunk : graph_.placement.chunks) {
    for (const LayerRange& range : chunk.layers) {
      while (module_sets_.size() <= static_cast<std::size_t>(range.module.value)) {
        module_sets_.push_back(fmt::format("module {}", module_sets_.size()));
      }
    }
  }
  std::map<std::vector<int>, std::size_t> known;
  for (const Chunk& chunk : graph_.placement.chunks) {
    std::vector<int> modules;
    for (const LayerRange& range : chunk.layers) {
      if (std::ranges::find(modules, range.module.value) == modules.end()) {
        modules.push_back(range.module.value);
      }
    }
    if (modules.size() == 1) {
      set_of_chunk_.push_back(static_cast<std::size_t>(modules.front()));
      continue;
    }
    const auto [found, is_new] = known.emplace(modules, module_sets_.size());
    if (is_new) {
      std::string name;
      for (const int module : modules) {
        name += name.empty() ? "" : "+";
        name += module_sets_[static_cast<std::size_t>(module)];
      }
      module_sets_.push_back(name);
    }
    set_of_chunk_.push_back(found->second);
  }
}

std::string TaskNames::task(TaskId id) const {
  const Task& task = graph_.task(id);
  std::string name(name_of(task.op));
  if (task.work.valid()) {
    name += " mb" + microbatch(task.work);
  }
  if (task.chunk.valid()) {
    name += ' ' + modules(task.chunk);
  }
  if (task.op == Op::Transfer && task.peer.valid()) {
    name += fmt::format(" to rank {}", task.peer.value);
  }
  return name;
}

std::string TaskNames::rank(RankId id) const {
  if (!several_replicas_) {
    return fmt::format("rank {}", id.value);
  }
  return fmt::format("rank {} · replica {}", id.value, graph_.rank(id).replica);
}

}  // namespace dipsim
