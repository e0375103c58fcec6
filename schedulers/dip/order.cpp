// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/order.hpp"

#include <numeric>

namespace dipsim::dip {

GroupOrder natural_order(const ReplicaGraph& graph) {
  GroupOrder order;
  order.forward.resize(graph.groups.size());
  std::iota(order.forward.begin(), order.forward.end(), Index{0});
  order.backward = order.forward;
  return order;
}

}  // namespace dipsim::dip
