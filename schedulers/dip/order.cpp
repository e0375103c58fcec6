// SPDX-License-Identifier: Apache-2.0
#include "schedulers/dip/order.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <ranges>
#include <span>

namespace dipsim::dip {

GroupOrder natural_order(const ReplicaGraph& graph) {
  GroupOrder order;
  order.forward.resize(graph.groups.size());
  std::iota(order.forward.begin(), order.forward.end(), Index{0});
  order.backward = order.forward;
  return order;
}

std::vector<Index> natural_passes(const ReplicaGraph& graph) {
  std::vector<Index> passes(graph.pair_count());
  std::iota(passes.begin(), passes.end(), Index{0});
  passes.reserve(graph.passes.size());
  for (std::size_t g = graph.groups.size(); g-- > 0;) {
    const Group& group = graph.groups[g];
    for (Index pass = group.first_backward; pass < group.last_backward; ++pass) {
      passes.push_back(pass);
      if (const Index weight = graph.weight[graph.passes[pass].pair];
          weight != ReplicaGraph::kNone) {
        passes.push_back(weight);
      }
    }
  }
  return passes;
}

namespace {

/// A microbatch: its groups, which stand together in natural order.
struct Member {
  Index first = 0;
  Index last = 0;
  Nanoseconds time = 0;
};

std::vector<Member> microbatches(const ReplicaGraph& graph) {
  std::vector<Member> members;
  for (Index g = 0; g < graph.groups.size(); ++g) {
    const Group& group = graph.groups[g];
    if (g == 0 || group.microbatch != graph.groups[g - 1].microbatch) {
      members.push_back({.first = g, .last = g});
    }
    Member& member = members.back();
    member.last = g + 1;
    for (Index pair = group.first_forward; pair < group.last_forward; ++pair) {
      member.time += graph.options_of(pair).front().time();
    }
  }
  return members;
}

GroupOrder order_of(std::span<const Member> members) {
  GroupOrder order;
  for (const Member& member : members) {
    for (Index g = member.first; g < member.last; ++g) {
      order.forward.push_back(g);
    }
  }
  order.backward = order.forward;
  return order;
}

/// From the lightest first: every second one, then the others backwards.
std::vector<Member> light_at_both_ends(std::span<const Member> sorted) {
  std::vector<Member> members;
  for (std::size_t i = 0; i < sorted.size(); i += 2) {
    members.push_back(sorted[i]);
  }
  for (std::size_t i = sorted.size() / 2 * 2; i > 0; i -= 2) {
    members.push_back(sorted[i - 1]);
  }
  return members;
}

std::vector<Member> lightest_outside(std::vector<Member> members) {
  const auto lightest = std::ranges::min_element(members, {}, &Member::time);
  std::rotate(members.begin(), lightest, lightest + 1);
  const auto second =
      std::ranges::min_element(members.begin() + 1, members.end(), {}, &Member::time);
  std::rotate(second, second + 1, members.end());
  return members;
}

}  // namespace

std::vector<GroupOrder> start_orders(const ReplicaGraph& graph) {
  std::vector<GroupOrder> orders = {natural_order(graph)};
  std::vector<Member> members = microbatches(graph);
  if (members.size() < 2) {
    return orders;
  }
  const auto add = [&](const std::vector<Member>& base) {
    orders.push_back(order_of(base));
    orders.push_back(order_of(lightest_outside(base)));
  };
  orders.push_back(order_of(lightest_outside(members)));
  std::ranges::stable_sort(members, {}, &Member::time);
  add(members);
  add(light_at_both_ends(members));
  std::ranges::reverse(members);
  add(members);
  return orders;
}

}  // namespace dipsim::dip
