// SPDX-License-Identifier: Apache-2.0
#include "validate/kernel_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace dipsim {

namespace {

constexpr std::int64_t kMaxSize = 10'000'000;

DataType type_of(const CsvRow& row) {
  const std::string_view name = row.text("dtype");
  if (name == "mxfp8") {
    return DataType::Mxfp8;
  }
  return name == "fp8" ? DataType::Fp8 : DataType::Bf16;
}

bool is_backward(const CsvRow& row) {
  const std::string_view direction = row.text("direction");
  if (!direction.starts_with("fwd") && !direction.starts_with("bwd")) {
    row.fail("direction", fmt::format("unknown direction \"{}\"; known: fwd, bwd", direction));
  }
  return direction.starts_with("bwd");
}

/// `batch` sequences of one length.
AttentionShape shape_of(const CsvRow& row, std::int64_t batch, std::int64_t heads, bool causal,
                        std::int64_t window) {
  const std::int64_t length = row.whole("seq_len_q", 1, kMaxSize);
  const auto s = static_cast<double>(length);
  double pairs = causal ? 0.5 * s * s : s * s;
  if (window > 0) {
    pairs = window_pairs(s, static_cast<double>(window));
  }
  return {.tokens = batch * length,
          .pairs = static_cast<double>(batch) * pairs,
          .heads = static_cast<int>(heads),
          .head_dim = static_cast<int>(row.whole("head_dim_qk", 1, kMaxSize)),
          .causal = causal,
          .backward = is_backward(row),
          .value_dim = static_cast<int>(row.whole("head_dim_v", 1, kMaxSize)),
          .kv_heads = 0,
          .window = window,
          .sequences = batch,
          .deterministic = false,
          .type = type_of(row)};
}

AttentionRow cudnn_row(const CsvRow& row) {
  const std::string_view mask = row.text("mask");
  if (mask != "no_mask" && mask != "top_left") {
    row.fail("mask", fmt::format("unknown mask \"{}\"; known: no_mask, top_left", mask));
  }
  const std::int64_t window =
      row.text("sliding_window").empty() ? 0 : row.whole("sliding_window", 1, kMaxSize);
  const auto gpu = shipped_gpu_of(row.text("gpu"));
  if (!gpu) {
    row.fail("gpu", fmt::format("no GPU of this name is shipped: \"{}\"", row.text("gpu")));
  }
  AttentionRow out{.line = row.line(),
                   .label = fmt::format("{} {} {} {}{}, {} x {} tokens{}", row.text("gpu"),
                                        row.text("model"), row.text("dtype"), row.text("direction"),
                                        mask == "top_left" ? " causal" : "", row.text("batch"),
                                        row.text("seq_len_q"),
                                        window > 0 ? fmt::format(", window {}", window) : ""),
                   .gpu = *gpu,
                   .shape = shape_of(row, row.whole("batch", 1, kMaxSize),
                                     row.whole("heads_q", 1, kMaxSize), mask == "top_left", window),
                   .seconds = row.number("time_ms", 1e-6) * 1e-3,
                   .fitted = false,
                   .note = ""};
  out.shape.kv_heads = static_cast<int>(row.whole("heads_kv", 1, kMaxSize));
  out.shape.deterministic = out.shape.backward && row.text("deterministic_bwd") == "True";
  if (out.shape.deterministic) {
    out.label += ", deterministic";
  }
  return out;
}

/// Order of the shapes from which every second one is fitted.
auto shape_key(const CsvRow& row, const AttentionRow& parsed) {
  return std::tuple(std::string(row.text("gpu")), std::string(row.text("model")),
                    std::string(row.text("dtype")), parsed.shape.backward, parsed.shape.causal,
                    parsed.shape.window, parsed.shape.heads, parsed.shape.tokens);
}

/// Kernels that dipsim's curves stand for. Older ones on Hopper and Blackwell are slower by design.
bool is_current_kernel(std::string_view gpu, std::string_view kernel) {
  if (gpu == "a100-80gb") {
    return kernel != "standard attention" && kernel != "SDPA cuDNN";
  }
  return kernel.find("cuDNN") != std::string_view::npos || kernel.starts_with("FA3") ||
         (kernel.starts_with("FA4") && kernel.find("1CTA") == std::string_view::npos);
}

bool is_fitted(const CsvRow& row, const AttentionRow& parsed) {
  const std::string_view kernel = row.text("kernel");
  const std::string_view gpu = row.text("gpu");
  return (gpu == "A100" && kernel == "SDPA flash") || (gpu == "H20" && kernel == "cuDNN") ||
         (gpu == "H100-SXM5-80GB" && kernel == "cuDNN") ||
         (gpu.starts_with("Blackwell") && !parsed.shape.backward);
}

/// Where heads are not printed they follow from time and rate; or from the benchmark of
/// FlashAttention, which has a fixed number of tokens and heads that make 2048 columns together
/// (github:Dao-AILab/flash-attention benchmarks/benchmark_flash_attention.py).
std::optional<std::int64_t> heads_of(const CsvRow& row) {
  constexpr double kColumns = 2048.0;
  constexpr double kTokens = 32'768.0;
  if (row.number_if("heads")) {
    return row.whole("heads", 1, kMaxSize);
  }
  const auto batch = row.number_if("batch", 1.0);
  const auto length = row.number_if("seq_len_q", 1.0);
  if (!batch || !length) {
    return std::nullopt;
  }
  const auto milliseconds = row.number_if("time_ms", 1e-6);
  const auto tflops = row.number_if("achieved_tflops", 1e-3);
  double heads = 0.0;
  if (milliseconds && tflops) {
    const AttentionShape one_head =
        shape_of(row, row.whole("batch", 1, kMaxSize), 1, row.text("causal") == "1", 0);
    heads = std::round(*milliseconds * *tflops * 1e9 / one_head.flops());
  } else if (*batch * *length == kTokens) {
    heads = std::floor(kColumns / row.number("head_dim_qk", 1.0));
  }
  return heads >= 1.0 && heads <= static_cast<double>(kMaxSize)
             ? std::optional(static_cast<std::int64_t>(heads))
             : std::nullopt;
}

std::string unusable_reason(const CsvRow& row, const std::optional<std::string>& gpu,
                            std::optional<std::int64_t> heads) {
  if (!gpu) {
    return fmt::format("no profile of {} is shipped", row.text("gpu"));
  }
  if (!is_current_kernel(*gpu, row.text("kernel"))) {
    return fmt::format("an older or unfused kernel on {}: {}", *gpu, row.text("kernel"));
  }
  if (!heads || !row.number_if("seq_len_q") || !row.number_if("batch")) {
    return "batch, heads or sequence are not given";
  }
  if (!row.number_if("time_ms") && !row.number_if("achieved_tflops")) {
    return "neither time nor rate is given";
  }
  return "";
}

AttentionRow other_row(const CsvRow& row, const std::string& gpu, std::int64_t heads) {
  const bool causal = row.text("causal") == "1";
  AttentionRow out{
      .line = row.line(),
      .label = fmt::format("{} {} {} {}{}, {} x {} tokens, {} heads of {}", row.text("gpu"),
                           row.text("kernel"), row.text("dtype"), row.text("direction"),
                           causal ? " causal" : "", row.text("batch"), row.text("seq_len_q"), heads,
                           row.text("head_dim_qk")),
      .gpu = gpu,
      .shape = shape_of(row, row.whole("batch", 1, kMaxSize), heads, causal, 0),
      .seconds = 0.0,
      .fitted = false,
      .note = row.text("heads").empty() ? "heads not printed: derived" : ""};
  if (row.text("causal") == "?") {
    out.note = "no mask assumed";
  }
  const auto milliseconds = row.number_if("time_ms", 1e-6);
  out.seconds = milliseconds ? *milliseconds * 1e-3
                             : out.shape.flops() / (row.number("achieved_tflops", 1e-3) * 1e12);
  out.fitted = is_fitted(row, out);
  return out;
}

}  // namespace

std::vector<AttentionRow> attention_cudnn_rows(const CsvTable& table) {
  std::vector<AttentionRow> rows;
  std::map<decltype(shape_key(table[0], {})), int> order;
  for (const CsvRow& row : table.rows()) {
    rows.push_back(cudnn_row(row));
    order.try_emplace(shape_key(row, rows.back()), 0);
  }
  int number = 0;
  for (auto& [key, place] : order) {
    place = number++;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].fitted = order.at(shape_key(table[i], rows[i])) % 2 == 0;
  }
  return rows;
}

std::vector<AttentionRow> attention_rows(const CsvTable& table,
                                         std::vector<UnusableRow>& unusable) {
  std::vector<AttentionRow> rows;
  for (const CsvRow& row : table.rows()) {
    const auto gpu = shipped_gpu_of(row.text("gpu"));
    const auto heads = heads_of(row);
    const std::string reason = unusable_reason(row, gpu, heads);
    if (!gpu || !heads || !reason.empty()) {
      unusable.push_back({row.line(), reason});
      continue;
    }
    rows.push_back(other_row(row, *gpu, *heads));
  }
  return rows;
}

}  // namespace dipsim
