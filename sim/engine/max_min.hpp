// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/engine/flow_network.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace dipsim {

/// Rates of the flows that are under way: max-min fair by progressive filling (Bertsekas and
/// Gallager, Data Networks, §6.5.2). The speed of all streams is raised together; a flow stays
/// where it reaches its own full speed or a resource on its route is full.
///
/// Only what may have changed is filled anew: flows that are joined, through resources which their
/// full speeds together would overload, to one that started or ended. Other resources can't bind.
/// Sums are integers, so the order of flows and resources does not matter.
class MaxMinShares {
 public:
  explicit MaxMinShares(const FlowNetwork& network);

  /// Only tasks with a route; each is started once before it is finished.
  void start(TaskId flow);
  void finish(TaskId flow);

  /// Whether refill() has something to do.
  [[nodiscard]] bool changed() const { return !started_.empty() || !seeds_.empty(); }

  /// Computes the rates anew. Calls changed(TaskId, double) for every flow that was started since
  /// the last call or has another rate than then; 1 is full speed.
  template <class Changed>
  void refill(const Changed& changed) {
    fill();
    for (const TaskId flow : updated_) {
      changed(flow, rate_[flow.row()]);
    }
  }

 private:
  /// A resource and the speed at which it would be full.
  using Level = std::pair<double, std::int32_t>;

  [[nodiscard]] std::span<const LinkUse> uses(TaskId flow) const;
  [[nodiscard]] bool overloadable(std::int32_t resource) const;
  [[nodiscard]] double level_of(std::int32_t resource) const;
  void fill();
  void find_component();
  void fill_component();
  void freeze(TaskId flow, double bytes_per_s);
  void set_rate(TaskId flow, double rate);
  void push(std::int32_t resource);

  const FlowNetwork& network_;

  // Per resource.
  std::vector<std::int64_t> demand_;        ///< of all flows at full speed
  std::vector<std::vector<TaskId>> flows_;  ///< under way
  std::vector<std::int64_t> left_;          ///< of its capacity, while filling
  std::vector<std::int64_t> streams_;       ///< of flows that still rise, while filling
  std::vector<std::uint32_t> resource_seen_;

  // Per task.
  std::vector<double> rate_;  ///< 0: not under way
  std::vector<std::uint32_t> flow_seen_;
  std::vector<std::uint8_t> rises_;  ///< while filling

  std::uint32_t round_ = 0;
  std::vector<TaskId> started_;
  std::vector<std::int32_t> seeds_;  ///< resources at which something has changed
  std::vector<std::int32_t> component_;
  std::vector<TaskId> members_;  ///< flows of the component, the slowest at full speed first
  std::vector<Level> levels_;    ///< a heap, the least level at the front
  std::vector<TaskId> updated_;
};

}  // namespace dipsim
