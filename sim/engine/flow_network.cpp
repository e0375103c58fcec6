// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/flow_network.hpp"

#include "sim/engine/routes.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dipsim {

namespace {

constexpr std::int32_t kNone = -1;

class Builder {
 public:
  Builder(const Cluster& cluster, const TaskGraph& graph)
      : cluster_(cluster), graph_(graph), routes_(cluster, graph.placement) {}

  FlowNetwork run() {
    network_.compute_slowdown = cluster_.gpu.profile.overlap.compute_slowdown.value;
    network_.route.assign(graph_.tasks.size(), kNone);
    network_.speed.assign(graph_.tasks.size(), 0);
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      add_flow(TaskId(i));
    }
    network_.capacity = std::move(routes_.capacities());
    network_.routes = std::move(routes_.rows());
    return std::move(network_);
  }

 private:
  void add_flow(TaskId id) {
    const Task& task = graph_.task(id);
    switch (task.op) {
      case Op::Transfer:
        set_flow(id, routes_.transfer_route(task.rank, task.peer), 1.0, task.fixed);
        break;
      case Op::CopyOut:
      case Op::CopyIn:
        set_flow(id, routes_.copy_route(task.rank, task.op == Op::CopyOut), 1.0,
                 copy_time(task.pair));
        break;
      case Op::Collective:
      case Op::Gather:
      case Op::Scatter:
        if (task.group.valid()) {
          add_collective(id);
        }
        break;
      default:
        break;
    }
  }

  /// `traffic`: bytes of one stream over the bytes of the task.
  void set_flow(TaskId id, std::int32_t route, double traffic, Duration time) {
    const double bytes = traffic * static_cast<double>(graph_.task(id).bytes.count);
    if (route == kNone || time.count() == 0 || bytes <= 0.0) {
      return;
    }
    // A measured time may be shorter than the links of the model allow: alone it is what it is.
    const double speed = std::min(bytes / to_seconds(time), routes_.limit(route));
    network_.route[id.row()] = route;
    network_.speed[id.row()] = std::max<std::int64_t>(1, static_cast<std::int64_t>(speed));
  }

  /// Around a ring of n every stream carries (n−1)/n of the bytes, twice in an all-reduce. The
  /// graph does not tell an all-reduce from a reduce-scatter, its time does: one that the links
  /// could not carry twice in that time has gone around once.
  void add_collective(TaskId id) {
    const Task& task = graph_.task(id);
    const auto n = static_cast<double>(graph_.placement.groups[task.group.row()].size());
    const Ring& ring = routes_.ring_of(task.group);
    if (routes_.loads_nothing(ring.route)) {  // it talks, but to nobody who is simulated
      network_.route[id.row()] = ring.route;
      network_.speed[id.row()] = 1;
      return;
    }
    const double once = (n - 1.0) / n;
    const double twice =
        2.0 * once / ring.cards * static_cast<double>(task.bytes.count) / to_seconds(task.fixed);
    const bool reduces = task.op == Op::Collective && twice <= routes_.limit(ring.route);
    set_flow(id, ring.route, (reduces ? 2.0 * once : once) / ring.cards, task.fixed);
  }

  /// The time of the copies of a pair is that of its strategy that offloads.
  [[nodiscard]] Duration copy_time(PairId pair) const {
    for (const Strategy& strategy : graph_.allowed(graph_.pair(pair))) {
      if (strategy.copy.count() > 0) {
        return strategy.copy;
      }
    }
    return Duration{0};
  }

  const Cluster& cluster_;
  const TaskGraph& graph_;
  Routes routes_;
  FlowNetwork network_;
};

}  // namespace

FlowNetwork build_flow_network(const Cluster& cluster, const TaskGraph& graph) {
  return Builder(cluster, graph).run();
}

}  // namespace dipsim
