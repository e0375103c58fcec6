// SPDX-License-Identifier: Apache-2.0
// The network curves of a profile: which may be missing, and which combinations make no sense.
#include "sim/cluster/gpu.hpp"
#include "sim/cluster/profile.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace {

using namespace dipsim;
using nlohmann::json;

HardwareProfile read(const json& text) {
  const JsonDocument document(text.dump(), "p.json");
  return read_profile(document.root());
}

json with(const std::string& gpu, const std::string& group, const std::string& key, double value) {
  json text = to_json(load_gpu(gpu).profile);
  text[group][key] = {{"value", value}, {"evidence", "prior"}, {"source", "test"}};
  return text;
}

bool refused(const json& text, const std::string& part) {
  const std::string message = test::error_of([&] { read(text); }).what();
  return message.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("GPUs before Hopper have no switches that add up, later ones do") {
  CHECK_FALSE(load_gpu("a100-80gb").profile.nvls.has_value());
  for (const std::string name : {"h100", "h200", "h800", "h20"}) {
    CHECK(load_gpu(name).profile.nvls.has_value());
    CHECK(load_gpu(name).profile.nvls_tree.has_value());
  }
}

TEST_CASE("a profile may lack NVLS, but not have trees of switches without it") {
  json text = to_json(load_gpu("h100").profile);
  text.erase("nvls_tree");
  CHECK(read(text).nvls.has_value());
  text = to_json(load_gpu("h100").profile);
  text.erase("nvls");
  CHECK(refused(text, "has \"nvls_tree\" but no \"nvls\""));
}

TEST_CASE("LL and LL128 may stay inside nodes, Simple may not") {
  for (const std::string group : {"ring_ll", "ring_ll128", "tree_ll", "tree_ll128"}) {
    CHECK_NOTHROW(read(with("h100", group, "nic_fraction", 0.0)));
  }
  for (const std::string group : {"ring_simple", "tree_simple"}) {
    CHECK(refused(with("h100", group, "nic_fraction", 0.0), "/" + group + "/nic_fraction"));
  }
}

TEST_CASE("fractions above 1 and negative latencies of the network are errors") {
  CHECK(refused(with("h100", "ring_simple", "nvlink_fraction", 1.01), "nvlink_fraction"));
  CHECK(refused(with("h100", "nvls_tree", "two_nodes_nic_fraction", 1.01), "two_nodes"));
  CHECK(refused(with("h100", "tree_ll", "nic_hop_us", -1.0), "/tree_ll/nic_hop_us"));
  CHECK(refused(with("h100", "p2p_channels", "per_peer", 0.0), "/p2p_channels/per_peer"));
}
