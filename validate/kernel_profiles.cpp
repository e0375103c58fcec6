// SPDX-License-Identifier: Apache-2.0
#include "validate/kernel_profiles.hpp"

#include "hw/fit/kernel_fit.hpp"
#include "sim/core/error.hpp"
#include "validate/kernel_rows.hpp"
#include "validate/refit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

/// GPUs whose kernel curves come from here. Other files in configs/gpus keep what they say.
constexpr std::array<std::string_view, 8> kRefitted = {"a100-80gb", "h100", "h200",  "h800",
                                                       "h20",       "b200", "gb200", "gb300"};

/// Mean of the fitted streams over the data sheet.
Parameter stream_fraction(const Gpu& gpu, const CsvTable& table) {
  double sum = 0.0;
  double count = 0.0;
  for (const BandwidthRow& row : bandwidth_rows(table)) {
    if (row.fitted && row.gpu == gpu.name) {
      sum += row.gbytes_per_s;
      count += 1.0;
    }
  }
  const double peak = gpu.memory_gbytes_per_s.value;
  return {rounded(sum / count / peak), Evidence::Measured,
          fmt::format("{} (BabelStream copy, mul, add, triad: mean {:.0f} of {:.0f} GB/s)",
                      kAzureSource, sum / count, peak)};
}

std::vector<MemorySample> norms_on(const CsvTable& table,
                                   std::initializer_list<std::string_view> gpus) {
  std::vector<MemorySample> samples;
  for (const NormRow& row : norm_rows(table)) {
    if (row.fitted && std::ranges::find(gpus, row.gpu) != gpus.end()) {
      samples.push_back({row.bytes, row.seconds});
    }
  }
  return samples;
}

/// Bandwidth of streams where they were measured, start-up of norms on H200; both of norms on GB200
/// and GB300, which have the same memory.
void refit_memory(GpusByName& gpus, const KernelTables& tables) {
  const auto memory = [&](std::string_view name) -> BandwidthCurve& {
    return gpus.at(std::string(name)).profile.memory;
  };
  for (const std::string name : {"a100-80gb", "h100", "h200"}) {
    memory(name).bandwidth_fraction = stream_fraction(gpus.at(name), tables.memory_bandwidth);
  }
  memory("h200").start_up_us =
      fit_memory_start(gpus.at("h200"), norms_on(tables.norm_layers, {"h200"}),
                       kCudnnNormSource + " (H200, cuDNN forward, every second row)");
  memory("h200") = rounded(memory("h200"));
  for (const std::string_view name : {"a100-80gb", "h100", "h20", "h800"}) {
    memory(name).start_up_us = carried(memory("h200").start_up_us, "H200");
  }
  memory("h800").bandwidth_fraction = carried(memory("h100").bandwidth_fraction, "H100");
  memory("h20").bandwidth_fraction = carried(memory("h200").bandwidth_fraction, "H200");
  const BandwidthCurve blackwell = rounded(fit_memory(
      gpus.at("gb200"), norms_on(tables.norm_layers, {"gb200", "gb300"}),
      kCudnnNormSource + " (GB200 and GB300, cuDNN forward, every second row, one fit)"));
  memory("gb200") = blackwell;
  memory("gb300") = blackwell;
  memory("b200") = carried(blackwell, "GB200");
}

std::vector<GemmSample> products_on(const CsvTable& table, const GpusByName& gpus,
                                    std::initializer_list<std::string_view> names) {
  std::vector<UnusableRow> unusable;
  std::vector<GemmSample> samples;
  for (const GemmRow& row : gemm_rows(table, unusable)) {
    if (row.library == GemmLibrary::Pool && std::ranges::find(names, row.gpu) != names.end()) {
      samples.push_back({&gpus.at(row.gpu), row.shape, row.seconds});
    }
  }
  return samples;
}

/// A100 on its own; H100 and H200, whose silicon is the same, together; all others as H100.
void refit_products(GpusByName& gpus, const KernelTables& tables) {
  const GemmFit ampere = fit_gemm(products_on(tables.gemm, gpus, {"a100-80gb"}),
                                  kAzureSource + " (A100, fp16, cuBLASLt)");
  const GemmFit hopper = fit_gemm(products_on(tables.gemm, gpus, {"h100", "h200"}),
                                  kPlaybookSource + " (H100, torch) and " + kAzureSource +
                                      " (H100 and H200, fp8, cuBLASLt), one fit");
  if (!ampere.wide || !hopper.wide || !hopper.fp8) {
    fail_input(tables.gemm.file(), "lacks products in 16 bits on A100, or in 16 or 8 bits on H100");
  }
  const GemmCurve wide = rounded(*hopper.wide);
  const GemmCurve fp8 = rounded(*hopper.fp8);
  for (auto& [name, gpu] : gpus) {
    const bool own = name == "h100" || name == "h200";
    gpu.profile.gemm = own ? wide : carried(wide, "H100");
    gpu.profile.gemm_fp8 = own ? fp8 : carried(fp8, "H100");
  }
  gpus.at("a100-80gb").profile.gemm = rounded(*ampere.wide);
  gpus.at("a100-80gb").profile.gemm_fp8.reset();
  // All 16-bit products in the pool ran on H100.
  gpus.at("h200").profile.gemm.peak_fraction = carried(wide.peak_fraction, "H100");
}

}  // namespace

std::optional<KernelTables> kernel_tables(const PublishedData& data) {
  auto gemm = data.table("gemm");
  auto attention_cudnn = data.table("attention_cudnn");
  auto attention = data.table("attention");
  auto norm_layers = data.table("norm_layers");
  auto memory_bandwidth = data.table("memory_bandwidth");
  if (!gemm || !attention_cudnn || !attention || !norm_layers || !memory_bandwidth) {
    return std::nullopt;
  }
  return KernelTables{std::move(*gemm), std::move(*attention_cudnn), std::move(*attention),
                      std::move(*norm_layers), std::move(*memory_bandwidth)};
}

std::vector<Gpu> refitted_gpus(const KernelTables& tables) {
  GpusByName gpus;
  for (const std::string_view name : kRefitted) {
    gpus.emplace(name, load_gpu(std::string(name)));
  }
  refit_memory(gpus, tables);
  refit_products(gpus, tables);
  refit_attention(gpus, tables.attention_cudnn, tables.attention);
  std::vector<Gpu> out;
  for (auto& [name, gpu] : gpus) {
    out.push_back(std::move(gpu));
  }
  return out;
}

}  // namespace dipsim
