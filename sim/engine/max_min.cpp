// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/max_min.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

namespace dipsim {

namespace {

/// Levels closer than this are one: what lies between them is rounding to whole bytes per second.
constexpr double kTie = 1e-9;

}  // namespace

std::int64_t FlowNetwork::load(const LinkUse& use, double bytes_per_s) {
  return std::llround(bytes_per_s * use.streams / kStreamUnit);
}

MaxMinShares::MaxMinShares(const FlowNetwork& network)
    : network_(network),
      demand_(network.capacity.size(), 0),
      flows_(network.capacity.size()),
      left_(network.capacity.size(), 0),
      streams_(network.capacity.size(), 0),
      resource_seen_(network.capacity.size(), 0),
      rate_(network.route.size(), 0.0),
      flow_seen_(network.route.size(), 0),
      rises_(network.route.size(), 0) {}

std::span<const LinkUse> MaxMinShares::uses(TaskId flow) const {
  return network_.routes[static_cast<std::size_t>(network_.route[flow.row()])];
}

/// Whether the flows under way want more of it than there is. Rounding of their loads is no want.
bool MaxMinShares::overloadable(std::int32_t resource) const {
  const auto r = static_cast<std::size_t>(resource);
  const std::int64_t capacity = network_.capacity[r];
  const auto slack = static_cast<std::int64_t>(static_cast<double>(capacity) * kTie) +
                     static_cast<std::int64_t>(flows_[r].size());
  return demand_[r] > capacity + slack;
}

void MaxMinShares::start(TaskId flow) {
  const auto speed = static_cast<double>(network_.speed[flow.row()]);
  for (const LinkUse& use : uses(flow)) {
    const auto r = static_cast<std::size_t>(use.resource);
    demand_[r] += FlowNetwork::load(use, speed);
    flows_[r].push_back(flow);
    if (overloadable(use.resource)) {
      seeds_.push_back(use.resource);
    }
  }
  started_.push_back(flow);
}

void MaxMinShares::finish(TaskId flow) {
  const auto speed = static_cast<double>(network_.speed[flow.row()]);
  for (const LinkUse& use : uses(flow)) {
    const auto r = static_cast<std::size_t>(use.resource);
    if (overloadable(use.resource)) {
      seeds_.push_back(use.resource);
    }
    demand_[r] -= FlowNetwork::load(use, speed);
    std::vector<TaskId>& flows = flows_[r];
    *std::ranges::find(flows, flow) = flows.back();
    flows.pop_back();
  }
  rate_[flow.row()] = 0.0;
}

void MaxMinShares::fill() {
  updated_.clear();
  ++round_;
  find_component();
  fill_component();
  for (const TaskId flow : started_) {
    if (flow_seen_[flow.row()] != round_ && rate_[flow.row()] == 0.0) {
      set_rate(flow, 1.0);  // alone, or beside flows that leave it enough
    }
  }
  started_.clear();
  seeds_.clear();
}

void MaxMinShares::find_component() {
  component_.clear();
  members_.clear();
  const auto see = [&](std::int32_t resource) {
    std::uint32_t& seen = resource_seen_[static_cast<std::size_t>(resource)];
    if (seen != round_) {
      seen = round_;
      component_.push_back(resource);
    }
  };
  for (const std::int32_t seed : seeds_) {
    see(seed);
  }
  for (std::size_t next = 0; next < component_.size(); ++next) {
    for (const TaskId flow : flows_[static_cast<std::size_t>(component_[next])]) {
      if (flow_seen_[flow.row()] == round_) {
        continue;
      }
      flow_seen_[flow.row()] = round_;
      members_.push_back(flow);
      for (const LinkUse& use : uses(flow)) {
        if (overloadable(use.resource)) {
          see(use.resource);
        }
      }
    }
  }
}

double MaxMinShares::level_of(std::int32_t resource) const {
  const auto r = static_cast<std::size_t>(resource);
  return static_cast<double>(left_[r]) * kStreamUnit / static_cast<double>(streams_[r]);
}

void MaxMinShares::push(std::int32_t resource) {
  levels_.emplace_back(level_of(resource), resource);
  std::ranges::push_heap(levels_, std::greater<>{});
}

void MaxMinShares::fill_component() {
  levels_.clear();
  for (const std::int32_t resource : component_) {
    const auto r = static_cast<std::size_t>(resource);
    left_[r] = network_.capacity[r];
    streams_[r] = 0;
  }
  std::ranges::sort(members_, {}, [&](TaskId flow) { return network_.speed[flow.row()]; });
  for (const TaskId flow : members_) {
    rises_[flow.row()] = 1;
    for (const LinkUse& use : uses(flow)) {
      streams_[static_cast<std::size_t>(use.resource)] += use.streams;
    }
  }
  for (const std::int32_t resource : component_) {
    if (streams_[static_cast<std::size_t>(resource)] > 0) {
      push(resource);
    }
  }
  double level = 0.0;
  std::size_t slowest = 0;
  while (!levels_.empty()) {
    std::ranges::pop_heap(levels_, std::greater<>{});
    const auto [stated, resource] = levels_.back();
    levels_.pop_back();
    if (streams_[static_cast<std::size_t>(resource)] == 0) {
      continue;
    }
    const double reached = level_of(resource);
    if (reached > stated * (1.0 + kTie)) {  // flows on it have stopped rising since
      push(resource);
      continue;
    }
    // Flows that get their full speed below this level leave the rest to the others.
    const std::size_t before = slowest;
    while (slowest < members_.size() &&
           static_cast<double>(network_.speed[members_[slowest].row()]) <= reached * (1.0 + kTie)) {
      const TaskId flow = members_[slowest++];
      if (rises_[flow.row()] != 0) {
        freeze(flow, static_cast<double>(network_.speed[flow.row()]));
      }
    }
    if (slowest != before) {
      if (streams_[static_cast<std::size_t>(resource)] > 0) {
        push(resource);
      }
      continue;
    }
    if (reached > level * (1.0 + kTie)) {
      level = reached;
    }
    for (const TaskId flow : flows_[static_cast<std::size_t>(resource)]) {
      if (rises_[flow.row()] != 0) {
        freeze(flow, level);
      }
    }
  }
  for (; slowest < members_.size(); ++slowest) {
    if (rises_[members_[slowest].row()] != 0) {
      freeze(members_[slowest], static_cast<double>(network_.speed[members_[slowest].row()]));
    }
  }
}

void MaxMinShares::freeze(TaskId flow, double bytes_per_s) {
  rises_[flow.row()] = 0;
  for (const LinkUse& use : uses(flow)) {
    const auto r = static_cast<std::size_t>(use.resource);
    left_[r] = std::max<std::int64_t>(0, left_[r] - FlowNetwork::load(use, bytes_per_s));
    streams_[r] -= use.streams;
  }
  set_rate(flow, bytes_per_s / static_cast<double>(network_.speed[flow.row()]));
}

void MaxMinShares::set_rate(TaskId flow, double rate) {
  if (rate != rate_[flow.row()]) {
    rate_[flow.row()] = rate;
    updated_.push_back(flow);
  }
}

}  // namespace dipsim
