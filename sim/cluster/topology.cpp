// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/topology.hpp"

#include "sim/core/error.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace dipsim {

namespace {

struct Edge {
  int link = 0;
  double cost = 0.0;
};

using BoostGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, Edge>;
using Vertex = boost::graph_traits<BoostGraph>::vertex_descriptor;

/// Thrown by the search when it has reached its goal: the library's own way to end one early.
struct Reached {};

/// Remembers over which link each vertex was reached.
class Recorder : public boost::default_dijkstra_visitor {
 public:
  Recorder(Vertex goal, std::vector<int>& over) : goal_(goal), over_(&over) {}

  template <class E, class G>
  void edge_relaxed(const E& edge, const G& graph) const {
    (*over_)[boost::target(edge, graph)] = graph[edge].link;
  }

  template <class G>
  void finish_vertex(Vertex vertex, const G& /*graph*/) const {
    if (vertex == goal_) {
      throw Reached{};
    }
  }

 private:
  Vertex goal_;
  std::vector<int>* over_;
};

}  // namespace

struct Topology::Graph {
  BoostGraph boost;
};

std::string_view name_of(DeviceKind kind) {
  constexpr std::array<std::string_view, 7> names = {"GPU",  "NVSwitch", "PCIe switch", "host",
                                                     "card", "leaf",     "spine"};
  return names[static_cast<std::size_t>(kind)];
}

Topology::Topology() : graph_(std::make_unique<Graph>()) {}

Topology::~Topology() = default;
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;

int Topology::add(Device device) {
  const int row = static_cast<int>(devices_.size());
  devices_.push_back(device);
  boost::add_vertex(graph_->boost);
  if (device.kind == DeviceKind::Gpu) {
    gpus_.push_back(row);
  }
  return row;
}

void Topology::connect(int a, int b, double gbytes_per_s, double share_gbytes_per_s) {
  const int size = static_cast<int>(devices_.size());
  DIPSIM_CHECK(0 <= a && a < size && 0 <= b && b < size && a != b, "a link between no devices");
  DIPSIM_CHECK(gbytes_per_s > 0.0, "a link without a speed");
  const double share = share_gbytes_per_s > 0.0 ? share_gbytes_per_s : gbytes_per_s;
  const bool bundle = devices_[static_cast<std::size_t>(a)].node < 0 &&
                      devices_[static_cast<std::size_t>(b)].node < 0;
  boost::add_edge(
      static_cast<Vertex>(a), static_cast<Vertex>(b),
      Edge{.link = static_cast<int>(links_.size()), .cost = 1.0 / (bundle ? share : gbytes_per_s)},
      graph_->boost);
  links_.push_back({.a = a, .b = b, .gbytes_per_s = gbytes_per_s, .share_gbytes_per_s = share});
}

int Topology::device_of(GpuId gpu) const {
  if (gpu.value < 0 || gpu.value >= gpus()) {
    fail_input(fmt::format("GPU {}", gpu.value),
               fmt::format("is not there; the last one is {}", gpus() - 1));
  }
  return gpus_[gpu.row()];
}

std::vector<int> Topology::route(GpuId from, GpuId to) const {
  const int start = device_of(from);
  const int goal = device_of(to);
  std::vector<int> links;
  if (start == goal) {
    return links;
  }
  std::vector<int> over(devices_.size(), -1);
  std::vector<double> distance(devices_.size());
  const BoostGraph& graph = graph_->boost;
  try {
    boost::dijkstra_shortest_paths(graph, static_cast<Vertex>(start),
                                   boost::weight_map(boost::get(&Edge::cost, graph))
                                       .distance_map(distance.data())
                                       .visitor(Recorder(static_cast<Vertex>(goal), over)));
  } catch (const Reached&) {  // NOLINT(bugprone-empty-catch): that is what it searched for
  }
  for (int at = goal; at != start;) {
    const int link = over[static_cast<std::size_t>(at)];
    if (link < 0) {
      fail_input(fmt::format("GPU {}", to.value),
                 fmt::format("no link leads there from GPU {}", from.value));
    }
    links.push_back(link);
    const Link& taken = links_[static_cast<std::size_t>(link)];
    at = taken.a == at ? taken.b : taken.a;
  }
  std::ranges::reverse(links);
  return links;
}

double Topology::bottleneck_gbytes_per_s(GpuId from, GpuId to) const {
  double least = std::numeric_limits<double>::infinity();
  for (const int link : route(from, to)) {
    least = std::min(least, links_[static_cast<std::size_t>(link)].share_gbytes_per_s);
  }
  return least;
}

}  // namespace dipsim
