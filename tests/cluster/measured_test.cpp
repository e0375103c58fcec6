// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/measured.hpp"

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/network_time.hpp"
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/texts.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <string>

namespace {

using namespace dipsim;
using nlohmann::json;
using test::contains;

constexpr CollectiveGroup kGroup{.members = 16, .nodes = 2};

json cluster_with(const json& patch) {
  json text = {{"name", "x"}, {"title", "X"},       {"gpu", "h100"},
               {"nodes", 2},  {"gpus_per_node", 8}, {"nic_gbytes_per_s", 50}};
  text.merge_patch(patch);
  return text;
}

Cluster read(const json& text) {
  const JsonDocument document(text.dump(), "x.json");
  return read_cluster(document.root());
}

std::string refusal(const json& patch) {
  const Error error = test::error_of([&] { read(cluster_with(patch)); });
  CHECK(error.kind() == ErrorKind::Input);
  return error.what();
}

json table(const std::string& collective, int gpus, int nodes, const json& points) {
  return {{"collective", collective},
          {"gpus", gpus},
          {"nodes", nodes},
          {"source", "a log"},
          {"points", points}};
}

constexpr const char* kLog =
    "# Collective test starting: all_reduce_perf\n"
    "#  Rank  0 Group  0 Pid 1 on a device  0 [04] H100\n"
    "#  Rank  1 Group  0 Pid 1 on a device  1 [05] H100\n"
    "#  size count type redop root time algbw busbw #wrong\n"
    "   1024 256 float sum -1 30.0 0.03 0.03 0\n"
    "   4096 1024 float sum -1 40.0 0.1 0.1 0\n";

constexpr const char* kMatrix =
    "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV8\t0-7\nGPU1\tNV8\t X \t0-7\n";

}  // namespace

TEST_CASE("between two measured sizes the time is a power of the size") {
  const MeasuredTable table{
      .kind = std::nullopt, .points = {{100.0, 10.0}, {10'000.0, 40.0}}, .source = ""};
  const auto model = [](double bytes) { return 1e-6 * bytes; };
  CHECK(measured_seconds(table, 100.0, model) == doctest::Approx(10e-6));
  CHECK(measured_seconds(table, 1'000.0, model) == doctest::Approx(20e-6));
  CHECK(measured_seconds(table, 10'000.0, model) == doctest::Approx(40e-6));
}

TEST_CASE("beyond the measured sizes the model is scaled to meet the end point") {
  const MeasuredTable table{
      .kind = std::nullopt, .points = {{100.0, 10.0}, {10'000.0, 40.0}}, .source = ""};
  const auto model = [](double bytes) { return 5e-6 + 1e-9 * bytes; };
  CHECK(measured_seconds(table, 50.0, model) ==
        doctest::Approx(10e-6 * model(50.0) / model(100.0)));
  CHECK(measured_seconds(table, 1e6, model) ==
        doctest::Approx(40e-6 * model(1e6) / model(10'000.0)));
  CHECK(measured_seconds(table, 10'001.0, model) == doctest::Approx(40e-6).epsilon(1e-3));
}

TEST_CASE("a measured table of a cluster goes before the model, for its kind and group only") {
  const Cluster plain = read(cluster_with(json::object()));
  const Cluster cluster = read(cluster_with(
      {{"measured", json::array({table("all-reduce", 16, 2, {{1e6, 500.0}, {1e8, 2'000.0}})})}}));
  const auto time = [](const Cluster& c, CollectiveKind kind, const CollectiveGroup& group) {
    return collective_seconds(c, kind, 1e7, group);
  };
  CHECK(time(cluster, CollectiveKind::AllReduce, kGroup) == doctest::Approx(1'000e-6));
  CHECK(time(cluster, CollectiveKind::AllGather, kGroup) ==
        time(plain, CollectiveKind::AllGather, kGroup));
  CHECK(time(cluster, CollectiveKind::AllReduce, {.members = 8, .nodes = 2}) ==
        time(plain, CollectiveKind::AllReduce, {.members = 8, .nodes = 2}));
  CHECK(collective_seconds(cluster, CollectiveKind::AllReduce, 0.0, kGroup) == 0.0);
}

TEST_CASE("measured messages take the table of the communicator, latency first") {
  const Cluster cluster = read(cluster_with(
      {{"nodes", 8},
       {"measured", json::array({table("send-receive", 16, 2, {{8, 25.0}, {1e8, 2'500.0}}),
                                 table("send-receive", 64, 8, {{8, 30.0}, {1e8, 5'000.0}})})}}));
  const auto time = [&](int ranks) {
    return p2p_time(cluster, 1e8, {.same_node = false, .communicator = ranks});
  };
  CHECK(time(16).latency == doctest::Approx(25e-6));
  CHECK(time(16).occupied == doctest::Approx(2'475e-6));
  CHECK(time(2).occupied == doctest::Approx(2'475e-6));
  CHECK(time(63).occupied == doctest::Approx(2'475e-6));
  CHECK(time(64).occupied == doctest::Approx(4'970e-6));
  const Cluster plain = read(cluster_with(json::object()));
  CHECK(p2p_time(cluster, 1e8, {.same_node = true}).occupied ==
        p2p_time(plain, 1e8, {.same_node = true}).occupied);
}

TEST_CASE(
    "measured files are found beside the cluster that names them, and are written out whole") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "run.txt", kLog);
  write_file(folder.path() / "c.json", cluster_with({{"measured", {"run.txt"}}}).dump());
  const Cluster cluster = load_cluster((folder.path() / "c.json").string());
  REQUIRE(cluster.measured.size() == 1);
  CHECK(cluster.measured[0].kind == CollectiveKind::AllReduce);
  CHECK(cluster.measured[0].members == 2);
  CHECK(cluster.measured[0].nodes == 1);
  CHECK(cluster.measured[0].points.size() == 2);
  CHECK(
      collective_seconds(cluster, CollectiveKind::AllReduce, 2'048.0, {.members = 2, .nodes = 1}) ==
      doctest::Approx(std::sqrt(30.0 * 40.0) * 1e-6));
  CHECK(read(to_json(cluster)) == cluster);
}

TEST_CASE("what a measured file does not tell must be given, and may not contradict it") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "run.txt", kLog);
  const std::string rows =
      "# size count type redop root time algbw busbw\n 8 2 float sum -1 9.0 0 0\n";
  write_file(folder.path() / "bare.txt", rows);
  const auto message = [&](const json& item) {
    write_file(folder.path() / "c.json", cluster_with({{"measured", json::array({item})}}).dump());
    return std::string(
        test::error_of([&] { load_cluster((folder.path() / "c.json").string()); }).what());
  };
  CHECK(contains(message("bare.txt"), "does not say what it measured: give \"collective\""));
  CHECK(contains(message({{"file", "bare.txt"}, {"collective", "all-reduce"}}), "give \"gpus\""));
  CHECK(contains(message({{"file", "run.txt"}, {"gpus", 4}}), "/measured/0/gpus: is 4 where"));
  CHECK(contains(message({{"file", "run.txt"}, {"collective", "broadcast"}}),
                 "/measured/0/collective: is not what"));
  CHECK(contains(message("missing.txt"), "missing.txt"));
  write_file(folder.path() / "c.json",
             cluster_with({{"measured", json::array({{{"file", "bare.txt"},
                                                      {"collective", "send-receive"},
                                                      {"gpus", 2},
                                                      {"nodes", 2}}})}})
                 .dump());
  CHECK(load_cluster((folder.path() / "c.json").string()).measured[0].nodes == 2);
}

TEST_CASE("broken tables of a cluster are refused with their place") {
  const auto one = [](const json& item) { return json{{"measured", json::array({item})}}; };
  CHECK(contains(refusal(one(table("all-reduces", 2, 1, {{1, 1}}))), "did you mean"));
  CHECK(contains(refusal(one(table("all-reduce", 1, 1, {{1, 1}}))), "/measured/0/gpus"));
  CHECK(contains(refusal(one(table("all-reduce", 2, 4, {{1, 1}}))), "can't lie on 4 nodes"));
  CHECK(contains(refusal(one(table("all-reduce", 2, 1, json::array()))), "holds no point"));
  CHECK(contains(refusal(one(table("all-reduce", 2, 1, {{1, 1}, {1, 2}}))),
                 "/measured/0/points/1/0: sizes must grow"));
  CHECK(contains(refusal(one(table("all-reduce", 2, 1, {{1, 0}}))), "/measured/0/points/0/1"));
  CHECK(contains(refusal(one(table("all-reduce", 2, 1, {{1, 1, 1}}))), "no pair"));
  const json twice = table("all-reduce", 2, 1, {{1, 1}});
  CHECK(contains(refusal({{"measured", json::array({twice, twice})}}),
                 "/measured/1: a second table of all-reduce on 2 GPUs"));
}

TEST_CASE("a topology file gives a cluster the GPUs and links of its nodes") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "node.txt", kMatrix);
  const auto load = [&](const json& patch) {
    json text = cluster_with(patch);
    if (!patch.contains("gpus_per_node")) {
      text.erase("gpus_per_node");
    }
    write_file(folder.path() / "c.json", text.dump());
    return load_cluster((folder.path() / "c.json").string());
  };
  const Cluster found = load({{"topology", "node.txt"}});
  CHECK(found.gpus_per_node == 2);
  CHECK(found.nvlink_gbytes_per_s == 200.0);
  CHECK(read(to_json(found)) == found);
  CHECK(load({{"topology", {{"file", "node.txt"}, {"gbytes_per_s_per_nvlink", 50}}}})
            .nvlink_gbytes_per_s == 400.0);
  CHECK(load({{"topology", "node.txt"}, {"nvlink_gbytes_per_s", 123}}).nvlink_gbytes_per_s ==
        123.0);
  const Error error =
      test::error_of([&] { load({{"topology", "node.txt"}, {"gpus_per_node", 8}}); });
  CHECK(contains(error.what(), "/gpus_per_node: is 8 where the topology file has 2 GPUs"));
}

TEST_CASE("fabric and node links of a cluster are checked and read back equal") {
  const Cluster cluster = read(cluster_with(
      {{"fabric", {{"kind", "fat-tree"}, {"nodes_per_leaf", 1}, {"oversubscription", 2}}},
       {"node", {{"kind", "pcie"}, {"gpus_per_switch", 4}}}}));
  CHECK(cluster.nvlink_gbytes_per_s == cluster.gpu.pcie_gbytes_per_s.value);
  CHECK(cluster.leaf_of_node(1) == 1);
  CHECK(read(to_json(cluster)) == cluster);
  CHECK(contains(refusal({{"fabric", {{"kind", "fat-trees"}}}}), "did you mean \"fat-tree\""));
  CHECK(contains(
      refusal(
          {{"fabric", {{"kind", "fat-tree"}, {"nodes_per_leaf", 1}, {"oversubscription", 0.5}}}}),
      "/fabric/oversubscription"));
  CHECK(contains(refusal({{"node", {{"kind", "pcie"}, {"gpus_per_switch", 3}}}}),
                 "3 does not divide the 8 GPUs"));
}
