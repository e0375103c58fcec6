// SPDX-License-Identifier: Apache-2.0
// What the fits of kernel_profiles.hpp share.
#pragma once

#include "sim/cluster/gpu.hpp"
#include "sim/cluster/profile.hpp"
#include "validate/csv_table.hpp"

#include <map>
#include <string>
#include <string_view>

namespace dipsim {

using GpusByName = std::map<std::string, Gpu>;

/// Where the tables say that their numbers come from.
inline const std::string kAzureSource = "github:Azure/AI-benchmarking-guide@8fd0c6e Azure_Results";
inline const std::string kPlaybookSource = "HF Smol Training Playbook";
inline const std::string kCudnnAttentionSource =
    "github:NVIDIA/cudnn-frontend@3929da2 benchmark/sdpa_benchmark_training/results";
inline const std::string kCudnnNormSource =
    "github:NVIDIA/cudnn-frontend@3929da2 benchmark/norms/results";

/// Three significant digits; what is next to nothing is nothing.
double rounded(double value);

/// Between the source of a fit and the GPU that it was made on, where another GPU takes it over.
inline constexpr std::string_view kCarriedOver = " — carried over from ";

/// All values of a curve rounded.
BandwidthCurve rounded(BandwidthCurve curve);
GemmCurve rounded(GemmCurve curve);
AttentionCurve rounded(AttentionCurve curve);

/// A parameter or curve of another GPU or kernel: a prior.
Parameter carried(Parameter parameter, const std::string& from);
BandwidthCurve carried(BandwidthCurve curve, const std::string& from);
GemmCurve carried(GemmCurve curve, const std::string& from);
AttentionCurve carried(AttentionCurve curve, const std::string& from);

/// Replaces the attention curves of all GPUs. Throws Input on malformed tables.
void refit_attention(GpusByName& gpus, const CsvTable& attention_cudnn, const CsvTable& attention);

}  // namespace dipsim
