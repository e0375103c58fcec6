// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedulers/static/order_builder.hpp"

#include <vector>

namespace dipsim {

/// The shortest of the orders that were offered, the first among equals.
struct ShortestOrder {
  Duration makespan = OrderBuilder::kNever;
  std::vector<std::vector<Step>> steps;  ///< per rank

  /// Whether this one is shorter than all before.
  bool offer(const OrderBuilder& order) {
    if (order.makespan() >= makespan) {
      return false;
    }
    makespan = order.makespan();
    steps = order.steps();
    return true;
  }
};

}  // namespace dipsim
