// SPDX-License-Identifier: Apache-2.0
// Evaluates the curves of a HardwareProfile. All times in seconds, at least the start-up; work of
// size zero takes no time. A data type that the GPU has no curve or no peak for is Infeasible.
#pragma once

#include "sim/cluster/gpu.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace dipsim {

/// `batch` products of [m,k] and [k,n], `output_bytes` moved per element of the result (2; 8 where
/// it is added to an fp32 buffer).
struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  int output_bytes = 2;
  DataType type = DataType::Bf16;  ///< of both inputs

  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

/// How attention is computed.
enum class AttentionKernel : std::uint8_t {
  Fused,       ///< the fastest kernels of the GPU: FlashAttention-2 on A100, cuDNN from H100 on
  Flash2,      ///< FlashAttention-2
  Triton,      ///< FlashAttention in Triton, as in 2023: slower, above all backward
  WrittenOut,  ///< scores are written to memory, as before 2022
};

std::string_view name_of(AttentionKernel kernel);

/// Fused attention over sequences of one kind.
struct AttentionShape {
  std::int64_t tokens = 0;  ///< query tokens of all sequences
  double pairs = 0.0;       ///< query-key pairs that count: Σ s², half of it where causal
  int heads = 0;
  int head_dim = 0;
  bool causal = false;
  bool backward = false;
  int value_dim = 0;           ///< of the values, where it differs; 0: head_dim
  int kv_heads = 0;            ///< where fewer than the query heads; 0: heads
  std::int64_t window = 0;     ///< keys that a query sees under a causal mask; 0: all before it
  std::int64_t sequences = 1;  ///< that the tokens belong to; needed beside a window only
  AttentionKernel kernel = AttentionKernel::Fused;
  bool deterministic = false;  ///< backward without atomic additions
  DataType type = DataType::Bf16;

  /// Multiplications and additions of `pairs`: products with the keys, then with the values.
  /// Backward has three of the former and two of the latter, 2.5 times as many where the dimensions
  /// are equal (FlashAttention-2, arXiv 2307.08691 §4).
  [[nodiscard]] double flops() const {
    const double values = value_dim > 0 ? value_dim : head_dim;
    const double per_pair = backward ? 6.0 * head_dim + 4.0 * values : 2.0 * (head_dim + values);
    return per_pair * pairs * static_cast<double>(heads);
  }
};

/// Query-key pairs of one causal sequence whose queries see `window` keys each, themselves
/// included: Σ min(i, window).
double window_pairs(double tokens, double window);

/// Whether the kernel leaves out what lies outside the window of the shape.
bool skips_outside_window(const AttentionShape& shape);

double gemm_seconds(const Gpu& gpu, const GemmShape& shape);

/// One kernel for the products of several groups that share n and k but have rows of their own each
/// (mixture of experts): group g is [rows[g], k] times its own [k, n]. `shape.m` and `shape.batch`
/// are not used. Tiles of all groups fill the waves together.
double grouped_gemm_seconds(const Gpu& gpu, const GemmShape& shape,
                            std::span<const std::int64_t> rows);

double attention_seconds(const Gpu& gpu, const AttentionShape& shape);
double memory_seconds(const Gpu& gpu, double bytes);

/// Time in which the host issues so many kernels: no sequence of them ends earlier.
double issue_seconds(const Gpu& gpu, int kernels);

}  // namespace dipsim
