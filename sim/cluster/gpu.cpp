// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/gpu.hpp"

#include "sim/cluster/parameter_file.hpp"
#include "sim/cluster/shipped.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace dipsim {

namespace {

constexpr std::array<ParameterField<Gpu>, 8> kSpecFields = {{
    {"peak_bf16_tflops", &Gpu::peak_bf16_tflops, 1e-3, 1e6},
    {"peak_fp8_tflops", &Gpu::peak_fp8_tflops, 0.0, 1e6},
    {"peak_tf32_tflops", &Gpu::peak_tf32_tflops, 0.0, 1e6},
    {"multiprocessors", &Gpu::multiprocessors, 1.0, 1e5},
    {"memory_gib", &Gpu::memory_gib, 1e-3, 1e5},
    {"memory_gbytes_per_s", &Gpu::memory_gbytes_per_s, 1e-3, 1e6},
    {"nvlink_gbytes_per_s", &Gpu::nvlink_gbytes_per_s, 1e-3, 1e5},
    {"pcie_gbytes_per_s", &Gpu::pcie_gbytes_per_s, 1e-3, 1e5},
}};

}  // namespace

std::string_view name_of(DataType type) {
  constexpr std::array<std::string_view, 4> kNames = {"bf16", "fp8", "mxfp8", "tf32"};
  return kNames[static_cast<std::size_t>(type)];
}

int bytes_of(DataType type) {
  switch (type) {
    case DataType::Bf16:
      return 2;
    case DataType::Fp8:
    case DataType::Mxfp8:
      return 1;
    case DataType::Tf32:
      return 4;
  }
  return 0;
}

double Gpu::peak_flops_per_s(DataType type) const {
  switch (type) {
    case DataType::Bf16:
      return peak_bf16_tflops.value * 1e12;
    case DataType::Fp8:
    case DataType::Mxfp8:
      return peak_fp8_tflops.value * 1e12;
    case DataType::Tf32:
      return peak_tf32_tflops.value * 1e12;
  }
  return 0.0;
}

Gpu read_gpu(const JsonValue& value) {
  JsonObject object = value.object();
  const std::string name = object.at("name").text();
  const std::string title = object.at("title").text();
  Gpu gpu = read_group<Gpu>(object.at("spec"), kSpecFields);
  gpu.name = name;
  gpu.title = title;
  gpu.profile = read_profile(object.at("profile"));
  object.finish();
  return gpu;
}

Gpu load_gpu(const std::string& name_or_path) {
  const JsonDocument document = JsonDocument::from_file(shipped_file("gpus", "GPU", name_or_path));
  return read_gpu(document.root());
}

nlohmann::json to_json(const Gpu& gpu) {
  return {{"name", gpu.name},
          {"title", gpu.title},
          {"spec", group_json(group_parameters<Gpu>(gpu, kSpecFields))},
          {"profile", to_json(gpu.profile)}};
}

std::vector<std::string> gpu_names() { return shipped_names("gpus"); }

}  // namespace dipsim
