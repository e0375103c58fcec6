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

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

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

TEST_CASE("large all-reduces are predicted within 10 % on average") {
  const auto rows = test::published_rows("nccl");
  if (!rows) {
    return;
  }

  struct Case {
    std::string what;
    std::string cluster;
    std::string gpu;
    std::string source;
    int max_gpus;
  };

  for (const Case& c :
       {Case{"A100, fitted", "a100-8", "A100-SXM4-40GB", "Echo", 8},
        Case{"A100, not seen", "a100-8", "A100 (8-GPU node)", "vTrain", 8},
        Case{"A100 up to 8 nodes, fitted", "a100-64", "A100-SXM4-40GB", "Echo", 64},
        Case{"A100 16 nodes, not seen", "a100-64", "A100-SXM4-40GB", "nccl_128", 128},
        Case{"H200, fitted", "h200-8", "H200-SXM-141GB", "Azure", 8},
        Case{"H100, not seen", "h100-8", "H100-SXM5-80GB", "Azure", 8}}) {
    const Cluster cluster = load_cluster(c.cluster);
    MeanError error;
    for (const PublishedRow& row : *rows) {
      const bool sized = !row.at("size_bytes").empty() &&
                         row.at("size_bytes").find_first_not_of("0123456789") == std::string::npos;
      if (row.at("gpu") != c.gpu || !contains(row.at("source"), c.source) || !sized ||
          row.at("collective") != "all_reduce") {
        continue;
      }
      const double bytes = number(row, "size_bytes");
      const int gpus = std::stoi(row.at("gpus"));
      const int nodes = std::stoi(row.at("nodes"));
      if (bytes < 1e6 || gpus > c.max_gpus || (c.max_gpus > 8 && nodes == 1)) {
        continue;
      }
      const double measured =
          row.at("time_us_outofplace").empty()
              ? 2.0 * (gpus - 1) / gpus * bytes / (number(row, "busbw_inplace_gbps") * 1e9)
              : number(row, "time_us_outofplace") * 1e-6;
      error.add(collective_seconds(cluster, CollectiveKind::AllReduce, bytes,
                                   {.members = gpus, .nodes = nodes}),
                measured);
    }
    MESSAGE(c.what << ": " << error.count() << " sizes, mean error " << error.percent() << " %");
    CHECK(error.count() > 10);
    CHECK(error.percent() < 10.0);
  }
}
