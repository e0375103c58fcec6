// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/kernel_time.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

constexpr std::array<std::int64_t, 10> kSizes = {1,   7,     64,    127,   128,
                                                 129, 1'000, 4'096, 8'192, 30'000};

/// A GPU on which every curve is a round number.
Gpu plain_gpu() {
  Gpu gpu;
  gpu.peak_bf16_tflops.value = 100.0;
  gpu.multiprocessors.value = 100.0;
  gpu.memory_gbytes_per_s.value = 1'000.0;
  gpu.profile.gemm.peak_fraction.value = 1.0;
  gpu.profile.gemm.smooth_waves.value = 1.0;
  gpu.profile.memory = {.start_up_us = {3.0, Evidence::Prior, ""},
                        .bandwidth_fraction = {0.5, Evidence::Prior, ""}};
  gpu.profile.head_dimension = {.at_64 = {0.5, Evidence::Prior, ""},
                                .at_256 = {1.0, Evidence::Prior, ""}};
  gpu.profile.attention_forward_full.peak_fraction.value = 0.5;
  return gpu;
}

Cluster plain_cluster() {
  Cluster cluster;
  cluster.gpu = plain_gpu();
  cluster.nvlink_gbytes_per_s = 100.0;
  cluster.nic_gbytes_per_s = 10.0;
  CollectiveCurve& curve = cluster.gpu.profile.all_gather_nvlink;
  curve.base_us.value = 5.0;
  curve.hop_us.value = 2.0;
  curve.bandwidth_fraction.value = 0.5;
  curve.ramp_mbytes.value = 1.0;
  cluster.gpu.profile.all_reduce_nvlink = curve;
  cluster.gpu.profile.collective_nic = curve;
  cluster.gpu.profile.p2p_nvlink = {.latency_us = {10.0, Evidence::Prior, ""},
                                    .bandwidth_fraction = {0.5, Evidence::Prior, ""}};
  cluster.gpu.profile.p2p_nic = {.latency_us = {20.0, Evidence::Prior, ""},
                                 .bandwidth_fraction = {1.0, Evidence::Prior, ""}};
  return cluster;
}

}  // namespace

TEST_CASE("a large product with no overheads runs at the peak") {
  const GemmShape shape{.m = 12'800, .n = 12'800, .k = 12'800};
  CHECK(gemm_seconds(plain_gpu(), shape) == doctest::Approx(shape.flops() / 100e12).epsilon(1e-3));
}

TEST_CASE("a product of one row is bound by reading its weights") {
  const GemmShape shape{.m = 1, .n = 8'192, .k = 8'192};
  Gpu gpu = plain_gpu();
  gpu.peak_bf16_tflops.value = 1e5;
  CHECK(gemm_seconds(gpu, shape) == doctest::Approx(2.0 * 8'192.0 * 8'192.0 / 500e9).epsilon(1e-2));
}

TEST_CASE("whole waves: one output tile more than there are multiprocessors costs a second wave") {
  Gpu gpu = plain_gpu();
  gpu.profile.gemm.smooth_waves.value = 0.0;
  gpu.memory_gbytes_per_s.value = 1e6;
  gpu.profile.gemm.prologue_k.value = 128.0;  // makes splitting a depth of 128 expensive
  // 100 tiles of 256 × 128, then 201 of 128 × 128: three waves of half the size.
  const double one = gemm_seconds(gpu, {.m = 25'600, .n = 128, .k = 128});
  const double two = gemm_seconds(gpu, {.m = 25'601, .n = 128, .k = 128});
  CHECK(one == doctest::Approx(2.0 * 25'600 * 128 * 256 / 100e12).epsilon(1e-3));
  CHECK(two == doctest::Approx(1.5 * one).epsilon(1e-3));
}

TEST_CASE("a deep product with a small result is split over the multiprocessors") {
  Gpu gpu = plain_gpu();
  gpu.profile.gemm.smooth_waves.value = 0.0;
  gpu.memory_gbytes_per_s.value = 1e6;
  const GemmShape shape{.m = 256, .n = 128, .k = 100'000};
  // One tile of 256 × 128 would keep one of 100 multiprocessors busy; eight parts of two tiles of
  // 128 × 128 keep sixteen.
  const double one_tile = shape.flops() / 1e12;
  CHECK(gemm_seconds(gpu, shape) == doctest::Approx(one_tile / 16.0).epsilon(1e-2));
}

TEST_CASE("attention counts half of the pairs under a causal mask, and 2.5 times backward") {
  const AttentionShape forward{.tokens = 8, .pairs = 64.0, .heads = 2, .head_dim = 16};
  CHECK(forward.flops() == 4.0 * 64 * 2 * 16);
  AttentionShape backward = forward;
  backward.backward = true;
  CHECK(backward.flops() == 2.5 * forward.flops());
}

TEST_CASE("attention pads its head dimension to one that kernels are compiled for") {
  const auto seconds = [](int head_dim) {
    return attention_seconds(
        plain_gpu(),
        {.tokens = 4'096, .pairs = 4'096.0 * 4'096.0, .heads = 8, .head_dim = head_dim});
  };
  CHECK(seconds(112) == seconds(128));
  CHECK(seconds(128) == doctest::Approx(4.0 * 4'096.0 * 4'096.0 * 8 * 128 / 50e12));
  // At 64 half the work runs at half the speed.
  CHECK(seconds(64) == doctest::Approx(seconds(128)));
}

TEST_CASE("a kernel bound by memory takes its start-up and bytes over bandwidth") {
  CHECK(memory_seconds(plain_gpu(), 1e9) == doctest::Approx(3e-6 + 1e9 / 500e9));
}

TEST_CASE("an all-gather moves (n-1)/n of its bytes, an all-reduce twice as much") {
  const Cluster cluster = plain_cluster();
  const CollectiveGroup group{.members = 8, .nodes = 1};
  const double gather = collective_seconds(cluster, CollectiveKind::AllGather, 8e8, group);
  CHECK(gather == doctest::Approx(5e-6 + 7 * 2e-6 + 7e8 / 50e9));
  CHECK(collective_seconds(cluster, CollectiveKind::ReduceScatter, 8e8, group) == gather);
  CHECK(collective_seconds(cluster, CollectiveKind::AllReduce, 8e8, group) ==
        doctest::Approx(5e-6 + 14 * 2e-6 + 14e8 / 50e9));
}

TEST_CASE(
    "between nodes every member of the group drives its own card, up to the speed of NVLink") {
  const Cluster cluster = plain_cluster();
  const auto seconds = [&](int per_node) {
    return collective_seconds(cluster, CollectiveKind::AllGather, 8e8,
                              {.members = 4 * per_node, .nodes = 4});
  };
  const double latency = 5e-6 + 2 * 2e-6;
  CHECK(seconds(1) == doctest::Approx(latency + 6e8 / 5e9));
  CHECK(seconds(2) == doctest::Approx(latency + 7e8 / 10e9));
  CHECK(seconds(32) == doctest::Approx(latency + 8e8 * 127 / 128 / 50e9));
}

TEST_CASE("a message takes NVLink inside a node and the network between nodes") {
  const Cluster cluster = plain_cluster();
  const LinkTime inside = p2p_time(cluster, 1e9, true);
  CHECK(inside.occupied == doctest::Approx(1e9 / 50e9));
  CHECK(inside.latency == doctest::Approx(10e-6));
  const LinkTime outside = p2p_time(cluster, 1e9, false);
  CHECK(outside.occupied == doctest::Approx(1e9 / 10e9));
  CHECK(outside.latency == doctest::Approx(20e-6));
}

TEST_CASE("nothing to do takes no time") {
  const Cluster cluster = load_cluster("h800-64");
  CHECK(gemm_seconds(cluster.gpu, {.m = 0, .n = 128, .k = 128}) == 0.0);
  CHECK(attention_seconds(cluster.gpu, {.tokens = 0, .heads = 8, .head_dim = 128}) == 0.0);
  CHECK(memory_seconds(cluster.gpu, 0.0) == 0.0);
  CHECK(collective_seconds(cluster, CollectiveKind::AllGather, 1e9, {1, 1}) == 0.0);
  CHECK(collective_seconds(cluster, CollectiveKind::AllGather, 0.0, {1, 8}) == 0.0);
}

TEST_CASE("no shipped GPU exceeds its peak at any size") {
  for (const std::string& name : gpu_names()) {
    const Gpu gpu = load_gpu(name);
    for (const std::int64_t m : kSizes) {
      for (const std::int64_t n : kSizes) {
        for (const std::int64_t k : kSizes) {
          const GemmShape shape{.m = m, .n = n, .k = k};
          const double share = shape.flops() / gemm_seconds(gpu, shape) / gpu.peak_flops_per_s();
          REQUIRE(share > 0.0);
          REQUIRE(share <= 1.0);
        }
      }
      for (const bool causal : {false, true}) {
        for (const bool backward : {false, true}) {
          for (const int head_dim : {64, 80, 112, 128, 256}) {
            const AttentionShape shape{.tokens = m,
                                       .pairs = static_cast<double>(m * m) * (causal ? 0.5 : 1.0),
                                       .heads = 8,
                                       .head_dim = head_dim,
                                       .causal = causal,
                                       .backward = backward};
            const double share =
                shape.flops() / attention_seconds(gpu, shape) / gpu.peak_flops_per_s();
            REQUIRE(share > 0.0);
            REQUIRE(share <= 1.0);
          }
        }
      }
      CHECK(static_cast<double>(m) * 1e3 / memory_seconds(gpu, static_cast<double>(m) * 1e3) <=
            gpu.memory_gbytes_per_s.value * 1e9);
    }
  }
}

TEST_CASE("more work never takes less time on a shipped cluster") {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name);
    double gemm = 0.0;
    double attention = 0.0;
    double gather = 0.0;
    double message = 0.0;
    for (std::int64_t tokens = 1; tokens <= 40'000; tokens += 61) {
      const auto t = static_cast<double>(tokens);
      const double next_gemm = gemm_seconds(cluster.gpu, {.m = tokens, .n = 1'344, .k = 1'792});
      const double next_attention = attention_seconds(
          cluster.gpu, {.tokens = tokens, .pairs = t * t, .heads = 2, .head_dim = 112});
      const double next_gather = collective_seconds(cluster, CollectiveKind::AllGather, t * 3'584,
                                                    {.members = 8, .nodes = 1});
      const double next_message = p2p_time(cluster, t * 3'584, true).occupied;
      REQUIRE(next_gemm >= gemm);
      REQUIRE(next_attention >= attention);
      REQUIRE(next_gather >= gather);
      REQUIRE(next_message >= message);
      gemm = next_gemm;
      attention = next_attention;
      gather = next_gather;
      message = next_message;
    }
  }
}
