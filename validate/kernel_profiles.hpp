// SPDX-License-Identifier: Apache-2.0
// The kernel curves of the shipped GPUs, fitted anew.
#pragma once

#include "sim/cluster/gpu.hpp"
#include "validate/csv_table.hpp"
#include "validate/published_data.hpp"

#include <optional>
#include <vector>

namespace dipsim {

/// Tables of single kernels.
struct KernelTables {
  CsvTable gemm;
  CsvTable attention_cudnn;
  CsvTable attention;
  CsvTable norm_layers;
  CsvTable memory_bandwidth;
};

/// Nothing where one of them is missing.
std::optional<KernelTables> kernel_tables(const PublishedData& data);

/// The GPUs that dipsim ships, with the curves of their kernels (gemm…, attention…, memory) fitted
/// to the rows that kernel_rows.hpp marks, rounded to three digits. What a GPU has no measurement
/// for is carried over from the nearest one that has, and marked as prior. Everything else stays as
/// shipped.
std::vector<Gpu> refitted_gpus(const KernelTables& tables);

}  // namespace dipsim
