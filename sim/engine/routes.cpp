// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/routes.hpp"

#include "sim/core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dipsim {

namespace {

constexpr std::int32_t kNone = -1;

}  // namespace

Routes::Routes(const Cluster& cluster, const Placement& placement)
    : cluster_(cluster),
      placement_(placement),
      ways_(cluster),
      capacity_(link_capacities(cluster)) {
  const auto gpus = static_cast<std::size_t>(cluster.gpus());
  const std::array<std::size_t, kLinkKinds> owners = {
      gpus, gpus, static_cast<std::size_t>(ways_.switches()), gpus,
      static_cast<std::size_t>(ways_.leaves())};
  std::size_t ends = 0;
  for (std::size_t kind = 0; kind < kLinkKinds; ++kind) {
    first_end_[kind] = ends;
    ends += 2 * owners[kind];
  }
  resource_of_end_.assign(ends, kNone);
  for (std::size_t r = 0; r < placement.ranks.size(); ++r) {
    gpus_.add_row();
    for (const CellId cell : placement.ranks[r].cells) {
      add_gpus(r, cell);
    }
  }
}

std::int32_t Routes::transfer_route(RankId from, RankId to) {
  const auto key = static_cast<std::int64_t>(from.value) << 32 | to.value;
  const auto [known, fresh] = route_of_pair_.try_emplace(key, kNone);
  if (fresh) {
    const std::span<const GpuId> senders = gpus_[from.row()];
    const std::span<const GpuId> receivers = gpus_[to.row()];
    // Streams that arrive at one GPU of the receiver.
    const double fan = static_cast<double>(senders.size()) / static_cast<double>(receivers.size());
    for (const LinkEnd& end : ways_.between(senders.front(), receivers.front())) {
      const std::span<const GpuId> side = end.out ? senders : receivers;
      add_use(end, sharers(end.kind, side) * (end.out ? 1.0 : fan));
    }
    known->second = finish_row();
  }
  return known->second;
}

std::int32_t Routes::copy_route(RankId rank, bool out) {
  const auto key = -2 - 2 * static_cast<std::int64_t>(rank.value) - (out ? 1 : 0);
  const auto [known, fresh] = route_of_pair_.try_emplace(key, kNone);
  if (fresh) {
    const std::span<const GpuId> gpus = gpus_[rank.row()];
    add_use({LinkKind::Lane, out, gpus.front().value}, 1.0);
    if (cluster_.node_links.kind == NodeKind::Pcie) {
      add_use({LinkKind::Host, out, ways_.switch_of(gpus.front())}, sharers(LinkKind::Host, gpus));
    }
    known->second = finish_row();
  }
  return known->second;
}

const Ring& Routes::ring_of(GroupId group) {
  rings_.resize(placement_.groups.size());
  Ring& ring = rings_[group.row()];
  if (ring.route != kNone) {
    return ring;
  }
  std::vector<RankId> members(placement_.groups[group.row()].begin(),
                              placement_.groups[group.row()].end());
  std::ranges::sort(members, {}, [&](RankId rank) { return gpus_[rank.row()].front(); });
  std::vector<NodeMembers> nodes;
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (nodes.empty() || node_of(members[nodes.back().begin]) != node_of(members[m])) {
      nodes.push_back({m, m});
    }
    ++nodes.back().end;
  }
  ring.cards = nodes.size() == 1 ? 1.0 : std::ranges::min(nodes, {}, &NodeMembers::count).count();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const NodeMembers& next = nodes[(n + 1) % nodes.size()];
    const NodeMembers& before = nodes[(n + nodes.size() - 1) % nodes.size()];
    for (std::size_t m = nodes[n].begin; m < nodes[n].end; ++m) {
      if (nodes[n].count() > 1.0) {
        add_peer_uses(members[m], ring.cards);
      }
      if (nodes.size() > 1) {
        const double streams = ring.cards / nodes[n].count();
        const bool peers = nodes[n].count() > 1.0;
        add_card_uses(members[m], members[next.begin], true, streams, peers);
        add_card_uses(members[m], members[before.begin], false, streams, peers);
      }
    }
  }
  ring.route = finish_row();
  if (ring.route == kNone) {
    rows_.add_row();
    limits_.push_back(0.0);
    ring.route = static_cast<std::int32_t>(rows_.size()) - 1;
  }
  return ring;
}

void Routes::add_gpus(std::size_t rank, CellId cell) {
  const std::span<const GpuId> gpus = placement_.cells[cell.row()];
  if (gpus.empty()) {
    fail_input(fmt::format("rank {}", rank),
               fmt::format("cell {} has no GPU, so its links are unknown", cell.value));
  }
  for (const GpuId gpu : gpus) {
    if (gpu.value < 0 || gpu.value >= cluster_.gpus()) {
      fail_input(fmt::format("rank {}", rank),
                 fmt::format("GPU {} is not there; the last one of {} is {}", gpu.value,
                             cluster_.name, cluster_.gpus() - 1));
    }
    gpus_.push_back(gpu);
  }
}

bool Routes::pcie_peers() const { return cluster_.node_links.kind == NodeKind::Pcie; }

void Routes::add_peer_uses(RankId member, double streams) {
  const int gpu = gpus_[member.row()].front().value;
  const LinkKind kind = pcie_peers() ? LinkKind::Lane : LinkKind::NvLink;
  add_use({kind, true, gpu}, streams);
  add_use({kind, false, gpu}, streams);
}

void Routes::add_card_uses(RankId member, RankId neighbour, bool out, double streams,
                           bool has_peers) {
  const std::span<const GpuId> gpus = gpus_[member.row()];
  if (!(pcie_peers() && has_peers)) {
    add_use({LinkKind::Lane, out, gpus.front().value}, streams);
  }
  add_use({LinkKind::Card, out, gpus.front().value}, streams);
  if (cluster_.leaf_of_node(node_of(member)) != cluster_.leaf_of_node(node_of(neighbour))) {
    add_use({LinkKind::Uplink, out, ways_.leaf_of(gpus.front())},
            streams * sharers(LinkKind::Uplink, gpus));
  }
}

int Routes::node_of(RankId rank) const { return cluster_.node_of(gpus_[rank.row()].front()); }

double Routes::sharers(LinkKind kind, std::span<const GpuId> gpus) const {
  if (kind != LinkKind::Uplink && kind != LinkKind::Host) {
    return 1.0;
  }
  const auto owner = [&](GpuId gpu) {
    return kind == LinkKind::Uplink ? ways_.leaf_of(gpu) : ways_.switch_of(gpu);
  };
  return static_cast<double>(std::ranges::count(gpus, owner(gpus.front()), owner));
}

void Routes::add_use(const LinkEnd& end, double streams) {
  const std::size_t index = first_end_[static_cast<std::size_t>(end.kind)] +
                            2 * static_cast<std::size_t>(end.owner) + (end.out ? 1 : 0);
  std::int32_t& resource = resource_of_end_[index];
  if (resource == kNone) {
    resource = static_cast<std::int32_t>(capacities_.size());
    capacities_.push_back(capacity_[static_cast<std::size_t>(end.kind)]);
  }
  row_.push_back({resource, static_cast<std::int32_t>(std::lround(streams * kStreamUnit))});
}

std::int32_t Routes::finish_row() {
  std::ranges::sort(row_, {}, &LinkUse::resource);
  std::size_t kept = 0;
  for (std::size_t i = 1; i < row_.size(); ++i) {
    if (row_[i].resource == row_[kept].resource) {
      row_[kept].streams += row_[i].streams;
    } else {
      row_[++kept] = row_[i];
    }
  }
  if (row_.empty()) {
    return kNone;
  }
  row_.resize(kept + 1);
  double limit = 0.0;
  for (const LinkUse& use : row_) {
    const double own = static_cast<double>(capacities_[static_cast<std::size_t>(use.resource)]) *
                       kStreamUnit / use.streams;
    limit = limit == 0.0 ? own : std::min(limit, own);
  }
  rows_.add_row(row_);
  limits_.push_back(limit);
  row_.clear();
  return static_cast<std::int32_t>(rows_.size()) - 1;
}

}  // namespace dipsim
