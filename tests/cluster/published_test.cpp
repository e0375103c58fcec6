// SPDX-License-Identifier: Apache-2.0
// The shipped curves against the tables that they were fitted to, and against tables of the same
// hardware that they have not seen.
#include "tests/cluster/published.hpp"

#include "sim/cluster/kernel_time.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace dipsim;
using test::MeanError;
using test::PublishedRow;

double number(const PublishedRow& row, const std::string& column) {
  return std::stod(row.at(column));
}

/// Predicted against measured matrix products of 16-bit types, one at a time, best-case searches
/// left out.
MeanError gemm_error(const std::vector<PublishedRow>& rows, const std::string& gpu_name) {
  const Gpu gpu = load_gpu(gpu_name == "A100-SXM4-80GB" ? "a100-80gb" : "h100");
  MeanError error;
  for (const PublishedRow& row : rows) {
    const bool type = row.at("dtype") == "bf16" || row.at("dtype") == "fp16";
    const bool typical = row.at("library") != "torch matmul";
    if (row.at("gpu") == gpu_name && type && typical) {
      const GemmShape shape{
          .m = std::stoll(row.at("m")), .n = std::stoll(row.at("n")), .k = std::stoll(row.at("k"))};
      error.add(gemm_seconds(gpu, shape), number(row, "time_us_derived") * 1e-6);
    }
  }
  return error;
}

}  // namespace

TEST_CASE("matrix products on A100 and H100 are predicted within 3 % on average") {
  const auto rows = test::published_rows("gemm");
  if (!rows) {
    return;
  }
  for (const std::string gpu : {"A100-SXM4-80GB", "H100-SXM5-80GB"}) {
    const MeanError error = gemm_error(*rows, gpu);
    MESSAGE(gpu << ": " << error.count() << " products, mean error " << error.percent() << " %");
    CHECK(error.count() >= 8);
    CHECK(error.percent() < 3.0);
  }
}

TEST_CASE("attention on H200 is predicted within 3 % on average") {
  const auto rows = test::published_rows("attention_cudnn");
  if (!rows) {
    return;
  }
  const Gpu gpu = load_gpu("h200");
  MeanError error;
  for (const PublishedRow& row : *rows) {
    if (row.at("gpu") == "NVIDIA H200" && row.at("model") == "llama3.1" &&
        row.at("dtype") == "bfloat16") {
      const double tokens = number(row, "seq_len_q");
      const bool causal = row.at("mask") == "top_left";
      const AttentionShape shape{.tokens = std::stoll(row.at("seq_len_q")),
                                 .pairs = tokens * tokens * (causal ? 0.5 : 1.0),
                                 .heads = std::stoi(row.at("heads_q")),
                                 .head_dim = std::stoi(row.at("head_dim_qk")),
                                 .causal = causal,
                                 .backward = row.at("direction") == "bwd"};
      error.add(attention_seconds(gpu, shape), number(row, "time_ms") * 1e-3);
    }
  }
  MESSAGE(error.count() << " kernels, mean error " << error.percent() << " %");
  CHECK(error.count() == 20);
  CHECK(error.percent() < 3.0);
}

TEST_CASE("norms on H200 are predicted within 20 % on average") {
  const auto rows = test::published_rows("norm_layers");
  if (!rows) {
    return;
  }
  const Gpu gpu = load_gpu("h200");
  MeanError error;
  for (const PublishedRow& row : *rows) {
    if (row.at("gpu") == "NVIDIA H200" && row.at("backend") == "cudnn") {
      const double seconds = number(row, "fwd_time_ms") * 1e-3;
      error.add(memory_seconds(gpu, number(row, "fwd_gbps") * 1e9 * seconds), seconds);
    }
  }
  MESSAGE(error.count() << " kernels, mean error " << error.percent() << " %");
  CHECK(error.percent() < 20.0);
}
