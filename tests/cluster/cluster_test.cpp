// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/cluster.hpp"

#include "sim/cluster/gpu.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace {

using namespace dipsim;
using nlohmann::json;

/// The shipped cluster with some keys replaced.
json cluster_with(const json& patch) {
  json text = {{"name", "x"},        {"title", "X"},           {"gpu", "h800"},    {"nodes", 2},
               {"gpus_per_node", 8}, {"nic_gbytes_per_s", 25}, {"reserved_gib", 4}};
  text.merge_patch(patch);
  return text;
}

Cluster read(const json& text) {
  const JsonDocument document(text.dump(), "x.json");
  return read_cluster(document.root());
}

Error refusal(const json& patch) {
  return test::error_of([&] { read(cluster_with(patch)); });
}

bool mentions(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("every shipped cluster loads under its own name") {
  REQUIRE(cluster_names().size() >= 11);
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    CHECK(cluster.name == name);
    CHECK(cluster.gpus() == cluster.nodes * cluster.gpus_per_node);
    CHECK(cluster.memory_limit() > cluster.reserved());
  }
}

TEST_CASE("every shipped GPU loads under its own name") {
  REQUIRE(gpu_names().size() >= 5);
  for (const std::string& name : gpu_names()) {
    CHECK(load_gpu(name).name == name);
  }
}

TEST_CASE("the test-beds of DIP have the size and the links that the paper prints") {
  const Cluster h800 = load_cluster("h800-64");
  CHECK(h800.gpus() == 64);
  CHECK(h800.nvlink_gbytes_per_s == 200.0);
  CHECK(h800.nic_gbytes_per_s == 25.0);
  CHECK(h800.gpu.peak_flops_per_s() == 989e12);
  const Cluster h20 = load_cluster("h20-16");
  CHECK(h20.gpus() == 16);
  CHECK(h20.gpu.peak_flops_per_s() == 148e12);
}

TEST_CASE("usable memory is the given share of the GPU's memory") {
  Cluster cluster = load_cluster("h800-64");
  cluster.usable_memory_fraction = 0.5;
  CHECK(cluster.memory_limit().count == std::int64_t{40} << 30U);
}

TEST_CASE("a GPU's node follows from its number") {
  const Cluster cluster = load_cluster("h800-64");
  CHECK(cluster.node_of(GpuId{7}) == 0);
  CHECK(cluster.node_of(GpuId{8}) == 1);
  CHECK(cluster.node_of(GpuId{63}) == 7);
}

TEST_CASE("a cluster written as JSON reads back equal, without any other file") {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    const json text = to_json(cluster);
    REQUIRE(text.at("gpu").is_object());
    CHECK(read(text) == cluster);
  }
}

TEST_CASE("a cluster takes the link of its GPU unless it has its own") {
  CHECK(read(cluster_with(json::object())).nvlink_gbytes_per_s == 200.0);
  CHECK(read(cluster_with({{"nvlink_gbytes_per_s", 150}})).nvlink_gbytes_per_s == 150.0);
}

TEST_CASE("slow GPUs are read by number and by node, and read back") {
  const Cluster cluster = read(cluster_with(
      {{"slow_gpus", {{{"node", 1}, {"speed", 0.9}}, {{"gpu", 2}, {"speed", 0.25}}}}}));
  REQUIRE(cluster.slow_gpus.size() == 9);
  CHECK(cluster.speed_of(GpuId{0}) == 1.0);
  CHECK(cluster.speed_of(GpuId{2}) == 0.25);
  CHECK(cluster.speed_of(GpuId{8}) == 0.9);
  CHECK(cluster.speed_of(GpuId{15}) == 0.9);
  CHECK(read(to_json(cluster)) == cluster);
}

TEST_CASE("slow GPUs that are not there, named twice, or of no legal speed are errors") {
  const auto slow = [](json entries) { return refusal({{"slow_gpus", std::move(entries)}}); };
  const Error missing = slow({{{"gpu", 16}, {"speed", 0.5}}});
  CHECK(mentions(missing, "/slow_gpus/0/gpu"));
  CHECK(mentions(missing, "GPU 16 does not exist: the cluster has 16 GPUs"));
  CHECK(mentions(missing, "nearest legal: 15"));
  CHECK(mentions(slow({{{"node", 2}, {"speed", 0.5}}}), "nearest legal: 1"));
  const Error twice = slow({{{"gpu", 9}, {"speed", 0.5}}, {{"node", 1}, {"speed", 0.75}}});
  CHECK(mentions(twice, "/slow_gpus/1/node"));
  CHECK(mentions(twice, "GPU 9 is named twice, at speed 0.5 and at 0.75"));
  CHECK(mentions(slow({{{"gpu", 1}, {"speed", 0}}}), "/slow_gpus/0/speed: 0 is not"));
  CHECK(mentions(slow({{{"gpu", 1}, {"speed", 1.5}}}), "from 0.001 to 1"));
  CHECK(mentions(slow({{{"gpu", -1}, {"speed", 0.5}}}), "/slow_gpus/0/gpu"));
  CHECK(mentions(slow({{{"gpu", 1}}}), "\"speed\" is missing"));
  CHECK(mentions(slow({{{"speed", 0.5}}}), "either \"gpu\" or \"node\""));
  CHECK(mentions(slow({{{"gpu", 1}, {"node", 0}, {"speed", 0.5}}}), "either \"gpu\" or \"node\""));
}

TEST_CASE("errors of a GPU's file and of a measured file carry the place in the cluster's file") {
  CHECK(mentions(refusal({{"gpu", "nowhere/x100.json"}}), "x.json: /gpu: "));
  CHECK(mentions(refusal({{"measured", {"nowhere.txt"}}}), "x.json: /measured/0: "));
  CHECK(mentions(refusal({{"topology", "nowhere.xml"}}), "x.json: /topology: "));
}

TEST_CASE("a measured table of more GPUs or nodes than the cluster has is an error") {
  const auto table = [](int gpus, int nodes) {
    return json{{"measured",
                 {{{"collective", "all-reduce"},
                   {"gpus", gpus},
                   {"nodes", nodes},
                   {"source", "test"},
                   {"points", {{1024, 10}}}}}}};
  };
  CHECK(read(cluster_with(table(16, 2))).measured.size() == 1);
  CHECK(mentions(
      refusal(table(17, 2)),
      "/measured/0: all-reduce on 17 GPUs in 2 nodes; the cluster has 16 GPUs in 2 nodes"));
  CHECK(mentions(refusal(table(3, 3)), "the cluster has 16 GPUs in 2 nodes"));
}

TEST_CASE("an unknown key is an error that names the nearest one") {
  const Error error = refusal({{"gpus_per_nodes", 8}});
  CHECK(error.kind() == ErrorKind::Input);
  CHECK(mentions(error, "x.json: /gpus_per_nodes"));
  CHECK(mentions(error, "did you mean \"gpus_per_node\""));
}

TEST_CASE("an unknown cluster or GPU is an error that names the nearest one") {
  CHECK(mentions(test::error_of([] { load_cluster("h800-6"); }), "did you mean \"h800-64\""));
  CHECK(mentions(refusal({{"gpu", "h8000"}}), "did you mean \"h800\""));
}

TEST_CASE("zero, negative, fractional and missing counts are errors") {
  CHECK(mentions(refusal({{"nodes", 0}}), "/nodes: 0 is not a whole number from 1"));
  CHECK(mentions(refusal({{"gpus_per_node", 0}}), "/gpus_per_node"));
  CHECK(mentions(refusal({{"gpus_per_node", -8}}), "/gpus_per_node"));
  CHECK(mentions(refusal({{"nodes", 1.5}}), "/nodes"));
  CHECK(mentions(refusal({{"nodes", "2"}}), "/nodes"));
  CHECK(mentions(refusal({{"nodes", nullptr}}), "\"nodes\" is missing"));
}

TEST_CASE("links and memory shares out of range are errors") {
  CHECK(mentions(refusal({{"nic_gbytes_per_s", 0}}), "/nic_gbytes_per_s"));
  CHECK(mentions(refusal({{"nic_gbytes_per_s", -1}}), "/nic_gbytes_per_s"));
  CHECK(mentions(refusal({{"usable_memory_fraction", 1.01}}), "/usable_memory_fraction"));
  CHECK(mentions(refusal({{"reserved_gib", 81}}), "/reserved_gib"));
}

TEST_CASE("NaN and infinity are errors, in whatever spelling") {
  for (const std::string spelling : {"NaN", "Infinity", "1e999"}) {
    const std::string text =
        "{\"name\":\"x\",\"title\":\"X\",\"gpu\":\"h800\",\"nodes\":1,"
        "\"gpus_per_node\":8,\"nic_gbytes_per_s\":" +
        spelling + "}";
    const Error error = test::error_of([&] {
      const JsonDocument document(text, "x.json");
      read_cluster(document.root());
    });
    CHECK(error.kind() == ErrorKind::Input);
  }
}
