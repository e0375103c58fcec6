// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cluster/parameter.hpp"
#include "sim/cluster/profile.hpp"
#include "sim/core/json.hpp"
#include "sim/core/units.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// What the tensor cores multiply. Bf16 stands for fp16 too; Mxfp8 is fp8 with a scale per 32
/// values.
enum class DataType : std::uint8_t { Bf16, Fp8, Mxfp8, Tf32 };

std::string_view name_of(DataType type);

/// Of one element in memory.
int bytes_of(DataType type);

/// One type of GPU: what the data sheet says, and what kernels reach on it.
struct Gpu {
  std::string name;
  std::string title;           ///< "NVIDIA H800 SXM5 80 GB"
  Parameter peak_bf16_tflops;  ///< dense, so are the next two
  Parameter peak_fp8_tflops;   ///< 0: no such tensor cores
  Parameter peak_tf32_tflops;  ///< 0: no such tensor cores
  Parameter multiprocessors;
  Parameter memory_gib;
  Parameter memory_gbytes_per_s;
  Parameter nvlink_gbytes_per_s;  ///< one way, all links together; 0: none
  Parameter pcie_gbytes_per_s;    ///< one way
  HardwareProfile profile;
  friend bool operator==(const Gpu&, const Gpu&) = default;

  [[nodiscard]] double peak_flops_per_s(DataType type = DataType::Bf16) const;
};

/// A shipped GPU by name (configs/gpus/NAME.json), or any file by its path. Throws Input.
Gpu load_gpu(const std::string& name_or_path);
Gpu read_gpu(const JsonValue& value);
nlohmann::json to_json(const Gpu& gpu);

/// Names of the shipped GPUs, in alphabetical order.
std::vector<std::string> gpu_names();

}  // namespace dipsim
