// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/profile.hpp"

#include "sim/cluster/gpu.hpp"
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
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

json shipped() { return to_json(load_gpu("h100").profile); }

std::string refusal(const json& text) {
  return test::error_of([&] { read(text); }).what();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a profile written as JSON reads back equal, provenance included") {
  for (const std::string& name : gpu_names()) {
    const HardwareProfile profile = load_gpu(name).profile;
    CHECK(read(to_json(profile)) == profile);
  }
}

TEST_CASE("a profile file of its own loads") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "p.json", shipped().dump());
  CHECK(load_profile(folder.path() / "p.json") == load_gpu("h100").profile);
}

TEST_CASE("every shipped parameter has a source that says where it can be checked") {
  for (const std::string& name : gpu_names()) {
    for (const NamedParameter& parameter : parameters(load_gpu(name).profile)) {
      CHECK_MESSAGE(!parameter.parameter.source.empty(), name << ": " << parameter.name);
    }
  }
}

TEST_CASE("GPUs without own measurements are marked so") {
  for (const std::string name : {"h800", "h20", "b200", "gb200", "gb300"}) {
    CHECK(load_gpu(name).profile.gemm.peak_fraction.evidence == Evidence::Prior);
  }
  CHECK(load_gpu("h100").profile.gemm.peak_fraction.evidence == Evidence::Fitted);
  CHECK(load_gpu("h100").profile.memory.bandwidth_fraction.evidence == Evidence::Measured);
}

TEST_CASE("a parameter may have a provenance of its own beside that of its group") {
  json text = shipped();
  text["gemm"] = {{"evidence", "fitted"},
                  {"source", "a table"},
                  {"start_up_us", 3},
                  {"peak_fraction", {{"value", 0.7}, {"evidence", "prior"}, {"source", "a guess"}}},
                  {"prologue_k", 100},
                  {"smooth_waves", 0}};
  const GemmCurve curve = read(text).gemm;
  CHECK(curve.start_up_us == Parameter{3.0, Evidence::Fitted, "a table"});
  CHECK(curve.peak_fraction == Parameter{0.7, Evidence::Prior, "a guess"});
}

TEST_CASE("a parameter without any provenance is an error") {
  json text = shipped();
  text["gemm"].erase("evidence");
  text["gemm"].erase("source");
  text["gemm"]["prologue_k"] = 100;
  CHECK(contains(refusal(text), "has no evidence"));
}

TEST_CASE("unknown evidence, unknown keys and missing curves are errors") {
  json evidence = shipped();
  evidence["memory"]["evidence"] = "guessed";
  CHECK(contains(refusal(evidence), "unknown evidence \"guessed\""));
  json key = shipped();
  key["memory"]["bandwith_fraction"] = 0.9;
  CHECK(contains(refusal(key), "did you mean \"bandwidth_fraction\""));
  json missing = shipped();
  missing.erase("p2p_nic");
  CHECK(contains(refusal(missing), "\"p2p_nic\" is missing"));
}

TEST_CASE("efficiencies of 0 or below, and above 1, are errors") {
  for (const double fraction : {0.0, -0.5, 1.01}) {
    json text = shipped();
    text["gemm"]["peak_fraction"] = {
        {"value", fraction}, {"evidence", "prior"}, {"source", "test"}};
    CHECK(contains(refusal(text), "/gemm/peak_fraction/value"));
  }
}

TEST_CASE("curves of kernels that a GPU lacks are left out, and stay out") {
  json text = shipped();
  for (const std::string key : {"gemm_fp8", "attention_forward_fp8", "attention_backward_fp8"}) {
    CHECK(text.contains(key));
    text.erase(key);
  }
  const HardwareProfile profile = read(text);
  CHECK(!profile.gemm_fp8);
  CHECK(!profile.attention_forward_fp8);
  CHECK(!profile.attention_backward_deterministic);
  CHECK(!to_json(profile).contains("gemm_fp8"));
  for (const NamedParameter& parameter : parameters(profile)) {
    CHECK(!contains(parameter.name, "fp8"));
  }
  CHECK(parameters(load_gpu("h100").profile).size() == parameters(profile).size() + 4 + 8 + 8);
}

TEST_CASE("only Blackwell GPUs have curves for mxfp8, and A100 has none for 8 bits at all") {
  for (const std::string& name : gpu_names()) {
    const Gpu gpu = load_gpu(name);
    const bool blackwell = name == "b200" || name == "gb200" || name == "gb300";
    CHECK(gpu.profile.attention_forward_mxfp8.has_value() == blackwell);
    CHECK(gpu.profile.gemm_fp8.has_value() == !name.starts_with("a100"));
    CHECK((gpu.peak_fp8_tflops.value > 0.0) == !name.starts_with("a100"));
  }
}
