// SPDX-License-Identifier: Apache-2.0
// Published measurements of single kernels, and which of them fits may see.
#pragma once

#include "sim/cluster/kernel_time.hpp"
#include "validate/csv_table.hpp"
#include "validate/validation_set.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// Shipped GPU (configs/gpus) that a name in the tables stands for; nothing where none is shipped.
std::optional<std::string> shipped_gpu_of(std::string_view name);

/// Who ran a matrix product of gemm.csv.
enum class GemmLibrary : std::uint8_t {
  Pool,      ///< cuBLASLt and torch on one shape after the other: what is fitted
  BestCase,  ///< the best of a search over shapes
  DeepGemm,  ///< block-scaled fp8 on H800, dense and grouped
  Batched,   ///< torch.bmm
};

struct GemmRow {
  int line = 0;
  std::string label;
  std::string gpu;  ///< shipped one
  GemmLibrary library = GemmLibrary::Pool;
  GemmShape shape;  ///< `batch` counts groups where grouped
  bool grouped = false;
  double seconds = 0.0;

  [[nodiscard]] double predicted(const Gpu& on) const;
};

/// All rows with a shape on a shipped GPU, in file order. The others go to `unusable`. Throws Input
/// on malformed rows; so do the next ones.
std::vector<GemmRow> gemm_rows(const CsvTable& table, std::vector<UnusableRow>& unusable);

struct AttentionRow {
  int line = 0;
  std::string label;
  std::string gpu;  ///< shipped one
  AttentionShape shape;
  double seconds = 0.0;
  bool fitted = false;  ///< seen by the fit of shipped curves
  std::string note;
};

/// attention_cudnn.csv. Every second shape is fitted: shapes are sorted by (gpu, model, data type,
/// direction, mask, window, heads, sequence); deterministic and other backward kernels of one shape
/// stay together.
std::vector<AttentionRow> attention_cudnn_rows(const CsvTable& table);

/// attention.csv: rows of the fastest fused kernels of each architecture. Fitted are those that no
/// other table replaces: FlashAttention-2 through PyTorch on A100, cuDNN on H20, and for the head
/// factors cuDNN on H100 and FlashAttention-4 on an unnamed Blackwell GPU.
std::vector<AttentionRow> attention_rows(const CsvTable& table, std::vector<UnusableRow>& unusable);

struct NormRow {
  int line = 0;
  std::string label;
  std::string gpu;      ///< shipped one
  std::string backend;  ///< "cudnn", "pytorch", "torch_compile"
  bool backward = false;
  double bytes = 0.0;  ///< read and written, as the table counts: 2 tensors forward, 3 backward
  double seconds = 0.0;
  bool fitted = false;
};

/// norm_layers.csv, two entries per row. Fitted is every second forward row of cuDNN.
std::vector<NormRow> norm_rows(const CsvTable& table);

struct BandwidthRow {
  int line = 0;
  std::string label;
  std::string gpu;  ///< shipped one
  double gbytes_per_s = 0.0;
  bool fitted = false;
};

/// memory_bandwidth.csv. Fitted are copy, mul, add and triad of BabelStream.
std::vector<BandwidthRow> bandwidth_rows(const CsvTable& table);

}  // namespace dipsim
