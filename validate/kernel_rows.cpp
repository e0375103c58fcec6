// SPDX-License-Identifier: Apache-2.0
#include "validate/kernel_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace dipsim {

namespace {

constexpr std::int64_t kMaxSize = 10'000'000;
constexpr std::int64_t kMaxGroups = 100'000;

std::string shipped(const CsvRow& row) {
  const auto gpu = shipped_gpu_of(row.text("gpu"));
  if (!gpu) {
    row.fail("gpu", fmt::format("no GPU of this name is shipped: \"{}\"", row.text("gpu")));
  }
  return *gpu;
}

DataType type_of(const CsvRow& row) {
  const std::string_view name = row.text("dtype");
  if (name == "fp8") {
    return DataType::Fp8;
  }
  if (name == "tf32") {
    return DataType::Tf32;
  }
  if (name != "bf16" && name != "fp16") {
    row.fail("dtype", fmt::format("unknown data type \"{}\"; known: bf16, fp16, fp8, tf32", name));
  }
  return DataType::Bf16;
}

GemmLibrary library_of(const CsvRow& row) {
  const std::string_view name = row.text("library");
  if (name == "cuBLASLt" || name == "torch") {
    return GemmLibrary::Pool;
  }
  if (name == "torch matmul") {
    return GemmLibrary::BestCase;
  }
  if (name.starts_with("DeepGEMM")) {
    return GemmLibrary::DeepGemm;
  }
  if (name != "torch bmm") {
    row.fail("library", fmt::format("unknown library \"{}\"", name));
  }
  return GemmLibrary::Batched;
}

}  // namespace

std::optional<std::string> shipped_gpu_of(std::string_view name) {
  // "A100" alone: its matrix units and SXM clock are what the 80 GB card has.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kNames = {{
      {"A100-SXM4-80GB", "a100-80gb"},
      {"A100", "a100-80gb"},
      {"unnamed (A100 likely)", "a100-80gb"},
      {"H100-SXM5-80GB", "h100"},
      {"H100", "h100"},
      {"H100 (implied by FA3)", "h100"},
      {"H200-SXM-141GB", "h200"},
      {"H200", "h200"},
      {"NVIDIA H200", "h200"},
      {"H800-SXM5", "h800"},
      {"H20", "h20"},
      {"B200", "b200"},
      {"GB200", "gb200"},
      {"NVIDIA GB200", "gb200"},
      {"NVIDIA GB300", "gb300"},
      {"Blackwell (2500 TFLOP/s peak implied)", "gb200"},
  }};
  const auto* const found = std::ranges::find(kNames, name, [](const auto& n) { return n.first; });
  return found == kNames.end() ? std::nullopt : std::optional(std::string(found->second));
}

double GemmRow::predicted(const Gpu& on) const {
  if (!grouped) {
    return gemm_seconds(on, shape);
  }
  const std::vector<std::int64_t> rows(static_cast<std::size_t>(shape.batch), shape.m);
  return grouped_gemm_seconds(on, shape, rows);
}

std::vector<GemmRow> gemm_rows(const CsvTable& table, std::vector<UnusableRow>& unusable) {
  std::vector<GemmRow> rows;
  for (const CsvRow& row : table.rows()) {
    const auto gpu = shipped_gpu_of(row.text("gpu"));
    if (row.text("m").empty()) {
      unusable.push_back({row.line(), "the shape is not given"});
      continue;
    }
    if (!gpu) {
      unusable.push_back({row.line(), fmt::format("no profile of {} is shipped", row.text("gpu"))});
      continue;
    }
    const DataType type = type_of(row);
    rows.push_back(
        {.line = row.line(),
         .label = fmt::format("{} {} {}, {} x {} x {} x {}", row.text("gpu"), row.text("dtype"),
                              row.text("library"), row.text("batch_or_groups"), row.text("m"),
                              row.text("n"), row.text("k")),
         .gpu = *gpu,
         .library = library_of(row),
         .shape = {.m = row.whole("m", 1, kMaxSize),
                   .n = row.whole("n", 1, kMaxSize),
                   .k = row.whole("k", 1, kMaxSize),
                   .batch = row.whole("batch_or_groups", 1, kMaxGroups),
                   .output_bytes = type == DataType::Tf32 ? 4 : 2,
                   .type = type},
         .grouped = row.text("library") == "DeepGEMM grouped",
         .seconds = row.number("time_us_derived", 1e-3) * 1e-6});
  }
  return rows;
}

std::vector<NormRow> norm_rows(const CsvTable& table) {
  std::vector<NormRow> rows;
  int forwards = 0;
  for (const CsvRow& row : table.rows()) {
    const std::string backend(row.text("backend"));
    const double tensor = 2.0 * row.number("tokens", 1.0) * row.number("hidden", 1.0);
    for (const bool backward : {false, true}) {
      const bool candidate = backend == "cudnn" && !backward;
      rows.push_back(
          {.line = row.line(),
           .label = fmt::format("{} {} {} {}, {} x {}, {}", row.text("gpu"), row.text("model"),
                                row.text("norm_type"), backend, row.text("tokens"),
                                row.text("hidden"), backward ? "backward" : "forward"),
           .gpu = shipped(row),
           .backend = backend,
           .backward = backward,
           .bytes = (backward ? 3.0 : 2.0) * tensor,
           .seconds = row.number(backward ? "bwd_time_ms" : "fwd_time_ms", 1e-6) * 1e-3,
           .fitted = candidate && forwards++ % 2 == 0});
    }
  }
  return rows;
}

std::vector<BandwidthRow> bandwidth_rows(const CsvTable& table) {
  static constexpr std::array<std::string_view, 4> kStreams = {"copy", "mul", "add", "triad"};
  std::vector<BandwidthRow> rows;
  for (const CsvRow& row : table.rows()) {
    const std::string_view op = row.text("op");
    // The one copy "in each direction" counts reading and writing apart.
    const double directions = op.ends_with("each direction") ? 2.0 : 1.0;
    rows.push_back({.line = row.line(),
                    .label = fmt::format("{} {}", row.text("gpu"), op),
                    .gpu = shipped(row),
                    .gbytes_per_s = directions * row.number("achieved_gbps", 1.0),
                    .fitted = std::ranges::find(kStreams, op) != kStreams.end()});
  }
  return rows;
}

}  // namespace dipsim
