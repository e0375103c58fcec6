// SPDX-License-Identifier: Apache-2.0
// Tasks on the links of real clusters: routes against the topology, and who slows whom.
#include "sim/engine/flow_network.hpp"

#include "sim/cluster/topology.hpp"
#include "sim/core/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/link_capacity.hpp"
#include "sim/engine/ways.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/graph_builder.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dipsim {
namespace {

using test::fused;
using test::GraphBuilder;
using test::ns;
using test::Passes;

/// Four nodes of 8 H100, cards of 50 GB/s, on leaves of 2 nodes where there is a fabric.
Cluster h100_nodes() {
  Cluster cluster = load_cluster("h100-64");
  cluster.nodes = 4;
  cluster.fabric.reset();
  return cluster;
}

Cluster with_fabric(FabricKind kind, double oversubscription) {
  Cluster cluster = h100_nodes();
  cluster.nodes = 6;
  cluster.fabric = Fabric{.kind = kind, .nodes_per_leaf = 2, .oversubscription = oversubscription};
  return cluster;
}

Cluster pcie_nodes() {
  Cluster cluster = h100_nodes();
  cluster.node_links = {.kind = NodeKind::Pcie, .gpus_per_switch = 4};
  cluster.nvlink_gbytes_per_s = cluster.gpu.pcie_gbytes_per_s.value;
  return cluster;
}

// Routes.

std::string text(LinkKind kind, bool out, int owner) {
  constexpr std::array<const char*, kLinkKinds> names = {"nvlink", "lane", "host", "card",
                                                         "uplink"};
  return std::string(names[static_cast<std::size_t>(kind)]) + (out ? "+" : "-") +
         std::to_string(owner) + " ";
}

/// The route of the whole topology as link ends; the link from PCIe to a card counts as its card.
/// Of several cards below one PCIe switch, all equally near, the GPU's own.
std::string searched(const Cluster& cluster, const Topology& topology, GpuId from, GpuId to) {
  std::string out;
  const bool several = cluster.node_links.gpus_per_switch > 1;
  int at = topology.device_of(from);
  for (const int row : topology.route(from, to)) {
    const Link& link = topology.links()[static_cast<std::size_t>(row)];
    const int next = link.a == at ? link.b : link.a;
    const Device& here = topology.devices()[static_cast<std::size_t>(at)];
    const Device& there = topology.devices()[static_cast<std::size_t>(next)];
    at = next;
    const auto gpu = [&](const Device& d) { return d.node * cluster.gpus_per_node + d.index; };
    const auto pcie = [&](const Device& d) {
      return d.node * (cluster.gpus_per_node / cluster.node_links.gpus_per_switch) + d.index;
    };
    const auto is = [&](DeviceKind a, DeviceKind b) { return here.kind == a && there.kind == b; };
    using enum DeviceKind;
    out += is(Gpu, NvSwitch)      ? text(LinkKind::NvLink, true, gpu(here))
           : is(NvSwitch, Gpu)    ? text(LinkKind::NvLink, false, gpu(there))
           : is(Gpu, PcieSwitch)  ? text(LinkKind::Lane, true, gpu(here))
           : is(PcieSwitch, Gpu)  ? text(LinkKind::Lane, false, gpu(there))
           : is(PcieSwitch, Host) ? text(LinkKind::Host, true, pcie(here))
           : is(Host, PcieSwitch) ? text(LinkKind::Host, false, pcie(there))
           : is(Nic, Leaf)        ? text(LinkKind::Card, true, several ? from.value : gpu(here))
                  : is(Leaf, Nic) ? text(LinkKind::Card, false, several ? to.value : gpu(there))
                  : is(Leaf, Spine) ? text(LinkKind::Uplink, true, here.index)
           : is(Spine, Leaf)      ? text(LinkKind::Uplink, false, there.index)
                                  : "";
  }
  return out;
}

TEST_CASE("ways by structure equal the routes of the whole topology, for every pair of GPUs") {
  for (const Cluster& cluster : {h100_nodes(), pcie_nodes(), with_fabric(FabricKind::FatTree, 4.0),
                                 with_fabric(FabricKind::RailOptimised, 1.0),
                                 with_fabric(FabricKind::RailOptimised, 16.0)}) {
    const Topology topology = build_topology(cluster);
    Ways ways(cluster);
    for (int from = 0; from < cluster.gpus(); ++from) {
      for (int to = 0; to < cluster.gpus(); ++to) {
        std::string found;
        for (const LinkEnd& end : ways.between(GpuId(from), GpuId(to))) {
          found += text(end.kind, end.out, end.owner);
        }
        const std::string expected = searched(cluster, topology, GpuId(from), GpuId(to));
        REQUIRE_MESSAGE(found == expected, from << " to " << to);
      }
    }
  }
}

// Who slows whom.

/// Ranks of one GPU each unless said otherwise; transfers are ready at once.
struct Jobs {
  Cluster cluster;
  GraphBuilder g{0};
  std::vector<std::vector<TaskId>> orders{};

  RankId rank(int first_gpu, int gpus = 1) {
    const CellId cell(orders.size());
    const RankId id = g.add_rank({cell});
    Placement& place = g.graph.placement;
    Rows<GpuId> cells;
    for (std::size_t c = 0; c + 1 < place.cells.size(); ++c) {
      cells.add_row(place.cells[c]);
    }
    cells.add_row();
    for (int i = 0; i < gpus; ++i) {
      cells.push_back(GpuId(first_gpu + i));
    }
    place.cells = cells;
    place.ranks.back().tp = gpus;
    orders.emplace_back();
    return id;
  }

  /// `gbytes_per_s` of each GPU of the sender for a millisecond.
  TaskId send(RankId from, RankId to, double gbytes_per_s) {
    const TaskId source = g.f(g.add_pair(from, Passes::ForwardOnly, fused(0, 0)));
    const TaskId sink = g.f(g.add_pair(to, Passes::ForwardOnly, fused(0, 0)));
    orders[from.row()].insert(orders[from.row()].begin(), source);
    orders[to.row()].push_back(sink);
    const TaskId transfer = g.add_transfer(source, sink, ns(kMillisecond));
    g.graph.tasks[transfer.row()].bytes = bytes(gbytes_per_s);
    return transfer;
  }

  /// An all-gather whose ring moves `gbytes_per_s` for a millisecond.
  TaskId gather(const std::vector<RankId>& ranks, double gbytes_per_s) {
    const TaskId task =
        g.add_task(Op::Gather, Lane::Comm, ranks.front(), ns(kMillisecond), g.add_group(ranks));
    const auto n = static_cast<double>(ranks.size());
    g.graph.tasks[task.row()].bytes = bytes(gbytes_per_s * n / (n - 1.0));
    return task;
  }

  [[nodiscard]] Timeline run() const {
    EngineOptions options;
    options.contention = true;
    Cluster quiet = cluster;
    quiet.gpu.profile.overlap.compute_slowdown.value = 0.0;
    return simulate(g.graph, g.schedule(orders), options, quiet);
  }

  /// How much longer than alone each task takes.
  [[nodiscard]] std::vector<double> stretch(const std::vector<TaskId>& tasks) const {
    const Timeline t = run();
    std::vector<double> out;
    for (const TaskId task : tasks) {
      const Span span = t.spans[task.row()];
      out.push_back(static_cast<double>((span.end - span.start).count()) / kMillisecond);
    }
    return out;
  }

  static Bytes bytes(double gbytes_per_s) {
    return round_to_bytes(gbytes_per_s * kBytesPerGb * 1e-3);
  }

  static constexpr std::int64_t kMillisecond = 1'000'000;
};

void check_near(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-4));
  }
}

constexpr double kCard = 42.0;  ///< 50 GB/s times the share that messages reach

TEST_CASE("a flow that is alone takes its time to the nanosecond, even faster than its links") {
  Jobs jobs{h100_nodes()};
  const TaskId fast = jobs.send(jobs.rank(0), jobs.rank(8), 1000.0);
  CHECK(jobs.stretch({fast}) == std::vector{1.0});
  CHECK(jobs.run().lost == LostTime{});
}

TEST_CASE("messages from one card to two nodes take twice as long, half as fast ones do not") {
  Jobs jobs{h100_nodes()};
  const RankId from = jobs.rank(0);
  const TaskId a = jobs.send(from, jobs.rank(8), kCard);
  const TaskId b = jobs.send(from, jobs.rank(16), kCard);
  check_near(jobs.stretch({a, b}), {2.0, 2.0});
  jobs.g.graph.tasks[a.row()].bytes = jobs.g.graph.tasks[b.row()].bytes = Jobs::bytes(kCard / 2);
  CHECK(jobs.stretch({a, b}) == std::vector{1.0, 1.0});
}

TEST_CASE("messages into one card share it, opposite directions and other cards do not") {
  Jobs jobs{h100_nodes()};
  const RankId a = jobs.rank(0);
  const RankId b = jobs.rank(8);
  const RankId c = jobs.rank(16);
  const TaskId into_b = jobs.send(a, b, kCard);
  const TaskId also_into_b = jobs.send(c, b, kCard);
  const TaskId out_of_b = jobs.send(b, a, kCard);
  const TaskId elsewhere = jobs.send(jobs.rank(1), jobs.rank(9), kCard);
  check_near(jobs.stretch({into_b, also_into_b, out_of_b, elsewhere}), {2.0, 2.0, 1.0, 1.0});
}

TEST_CASE("NVLink inside a node and a card are different links") {
  Jobs jobs{h100_nodes()};
  const RankId from = jobs.rank(0);
  const TaskId near = jobs.send(from, jobs.rank(1), 365.0);
  const TaskId far = jobs.send(from, jobs.rank(8), kCard);
  CHECK(jobs.stretch({near, far}) == std::vector{1.0, 1.0});
  const TaskId near_too = jobs.send(from, jobs.rank(2), 365.0);
  const std::vector<double> stretch = jobs.stretch({near, near_too});
  CHECK(stretch[0] > 1.9);
  CHECK(stretch[1] > 1.9);
}

TEST_CASE("a ring over nodes shares the cards of its members with a message") {
  Jobs jobs{h100_nodes()};
  const std::vector<RankId> members = {jobs.rank(0), jobs.rank(8), jobs.rank(16)};
  const TaskId gather = jobs.gather(members, kCard);
  const TaskId message = jobs.send(members[1], jobs.rank(24), kCard);
  // Both at half speed; they end together.
  check_near(jobs.stretch({gather, message}), {2.0, 2.0});
}

TEST_CASE("members of a ring on one node share what leaves it among their cards") {
  Jobs jobs{h100_nodes()};
  const std::vector<RankId> members = {jobs.rank(0), jobs.rank(1), jobs.rank(8), jobs.rank(9)};
  const TaskId gather = jobs.gather(members, 2 * kCard);  // half of it through each of two cards
  CHECK(jobs.stretch({gather}) == std::vector{1.0});
  const TaskId message = jobs.send(members[0], jobs.rank(16), kCard);
  // Half of the card each: the other card of the ring waits for this one.
  check_near(jobs.stretch({gather, message}), {2.0, 2.0});
}

TEST_CASE("an all-reduce passes every card twice, a reduce-scatter of the same bytes once") {
  const auto speed = [](double ms) {
    Jobs jobs{h100_nodes()};
    const TaskId task =
        jobs.g.add_task(Op::Collective, Lane::Gradient, RankId(0), ns(std::llround(ms * 1e6)),
                        jobs.g.add_group({jobs.rank(0), jobs.rank(8)}));
    jobs.g.graph.tasks[task.row()].bytes = Jobs::bytes(kCard);
    return static_cast<double>(build_flow_network(jobs.cluster, jobs.g.graph).speed[task.row()]) /
           kBytesPerGb;
  };
  CHECK(speed(0.6) ==
        doctest::Approx(kCard / 2 / 0.6));  // too short for the card to carry it twice
  CHECK(speed(1.2) == doctest::Approx(kCard / 1.2));
}

TEST_CASE("copies to the host share the PCIe lane with the card, each direction for itself") {
  Jobs jobs{h100_nodes()};
  const RankId rank = jobs.rank(0);
  const double lane =
      static_cast<double>(link_capacities(jobs.cluster)[static_cast<std::size_t>(LinkKind::Lane)]) /
      kBytesPerGb;
  REQUIRE(lane > kCard);
  Strategy strategy = fused(0, 0);
  strategy.mode = RecomputeMode::Offload;
  strategy.copy = ns(Jobs::kMillisecond);
  const PairId pair = jobs.g.add_pair(rank, Passes::Fused, strategy);
  const TaskId between = jobs.g.f(jobs.g.add_pair(rank, Passes::ForwardOnly, fused(0, 0)));
  jobs.g.add_pair_edges(pair);
  jobs.g.add_offload(pair);
  const TaskId out = jobs.g.graph.pair(pair).copy_out;
  const TaskId in = jobs.g.graph.pair(pair).copy_in;
  jobs.g.graph.tasks[out.row()].bytes = jobs.g.graph.tasks[in.row()].bytes = Jobs::bytes(lane);
  jobs.orders[0] = {jobs.g.f(pair), between, jobs.g.b(pair)};
  const TaskId sent = jobs.send(rank, jobs.rank(8), kCard);
  Schedule schedule = jobs.g.schedule(jobs.orders);
  schedule.offloads = {{pair, between, between}};
  EngineOptions options;
  options.contention = true;
  const Timeline t = simulate(jobs.g.graph, schedule, options, jobs.cluster);
  const auto took = [&](TaskId task) {
    return static_cast<double>((t.spans[task.row()].end - t.spans[task.row()].start).count()) /
           Jobs::kMillisecond;
  };
  // Half of the lane each until the message has gone; the copy back comes later and is alone.
  CHECK(took(sent) == doctest::Approx(kCard / (lane / 2)).epsilon(1e-4));
  CHECK(took(out) == doctest::Approx(1.0 + kCard / lane).epsilon(1e-4));
  CHECK(took(in) == 1.0);
}

TEST_CASE("without NVLink, GPUs below different switches meet at the host") {
  Jobs jobs{pcie_nodes()};
  const double lane = 40.0;
  const TaskId a = jobs.send(jobs.rank(0), jobs.rank(4), lane);
  const TaskId b = jobs.send(jobs.rank(1), jobs.rank(5), lane);
  const TaskId below = jobs.send(jobs.rank(2), jobs.rank(3), lane);
  const std::vector<double> stretch = jobs.stretch({a, b, below});
  CHECK(stretch[0] > 1.4);  // one link between the switch and the host for both
  CHECK(stretch[1] > 1.4);
  CHECK(stretch[2] == 1.0);
}

TEST_CASE("all streams of wide ranks count on the uplink of a leaf of a fat tree") {
  // 2 nodes of 8 cards of 42 over 4: 168 GB/s up.
  Jobs jobs{with_fabric(FabricKind::FatTree, 4.0)};
  const TaskId a = jobs.send(jobs.rank(0, 8), jobs.rank(16, 8), 21.0);
  CHECK(jobs.stretch({a}) == std::vector{1.0});  // 8 × 21 is all of it
  const TaskId b = jobs.send(jobs.rank(8, 8), jobs.rank(24, 8), 21.0);
  check_near(jobs.stretch({a, b}), {2.0, 2.0});
  Jobs same_leaf{with_fabric(FabricKind::FatTree, 4.0)};
  const TaskId c = same_leaf.send(same_leaf.rank(0, 8), same_leaf.rank(8, 8), kCard);
  CHECK(same_leaf.stretch({c}) == std::vector{1.0});
}

TEST_CASE("on rails each position of the node has an uplink of its own") {
  // 2 cards of 42 over 4 per rail: 21 GB/s up.
  Jobs jobs{with_fabric(FabricKind::RailOptimised, 4.0)};
  const TaskId a = jobs.send(jobs.rank(0), jobs.rank(16), 21.0);
  const TaskId other_rail = jobs.send(jobs.rank(1), jobs.rank(17), 21.0);
  const TaskId same_rail = jobs.send(jobs.rank(8), jobs.rank(24), 21.0);
  check_near(jobs.stretch({a, other_rail, same_rail}), {2.0, 1.0, 2.0});
}

TEST_CASE("a rank of eight GPUs sends each of four receivers two streams") {
  Jobs jobs{h100_nodes()};
  const RankId receiver = jobs.rank(8, 4);
  const TaskId wide = jobs.send(jobs.rank(0, 8), receiver, kCard / 2);
  CHECK(jobs.stretch({wide}) == std::vector{1.0});
  const TaskId narrow = jobs.send(jobs.rank(16, 4), receiver, kCard);
  // Three streams into each card: the wide rank's two get 28, the narrow rank's one 14.
  check_near(jobs.stretch({wide, narrow}), {1.5, 2.0});
}

TEST_CASE("a cell without a GPU and a GPU that is not there are named") {
  Jobs jobs{h100_nodes()};
  jobs.send(jobs.rank(0), jobs.rank(32), kCard);
  const Error beyond = test::error_of([&] { static_cast<void>(jobs.run()); });
  CHECK(beyond.kind() == ErrorKind::Input);
  CHECK(std::string(beyond.what()).find("GPU 32 is not there; the last one") != std::string::npos);
  Jobs empty{h100_nodes()};
  const RankId sender = empty.rank(0);
  empty.send(sender, empty.rank(8, 0), kCard);
  const Error none = test::error_of([&] { static_cast<void>(empty.run()); });
  CHECK(none.kind() == ErrorKind::Input);
  CHECK(none.where() == "rank 1");
}

TEST_CASE("contention off on a cluster is the plain engine") {
  Jobs jobs{h100_nodes()};
  const RankId from = jobs.rank(0);
  jobs.send(from, jobs.rank(8), kCard);
  jobs.send(from, jobs.rank(16), kCard);
  const Schedule schedule = jobs.g.schedule(jobs.orders);
  CHECK(simulate(jobs.g.graph, schedule, {}, jobs.cluster) == simulate(jobs.g.graph, schedule));
}

}  // namespace
}  // namespace dipsim
