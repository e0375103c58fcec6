// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/kernel_time.hpp"

#include "sim/cluster/cluster.hpp"
#include "sim/core/error.hpp"
#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

constexpr std::array<std::int64_t, 10> kSizes = {1,   7,     64,    127,   128,
                                                 129, 1'000, 4'096, 8'192, 30'000};

Parameter plain(double value) { return {value, Evidence::Prior, ""}; }

/// No overheads; half of the peak at head dimension 128.
AttentionCurve plain_attention() {
  return {.start_up_us = plain(0.0),
          .row_ns = plain(0.0),
          .edge_pairs = plain(0.0),
          .window_pairs = plain(0.0),
          .peak_fraction = plain(0.5),
          .at_64 = plain(0.5),
          .at_192 = plain(0.9),
          .at_256 = plain(1.0)};
}

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
  gpu.profile.attention_forward = plain_attention();
  gpu.profile.attention_backward = plain_attention();
  return gpu;
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

TEST_CASE(
    "half the bytes per element: a product in fp8 that is bound by memory takes half the time") {
  Gpu gpu = plain_gpu();
  gpu.peak_bf16_tflops.value = 1e5;
  gpu.peak_fp8_tflops.value = 2e5;
  gpu.profile.gemm_fp8 = gpu.profile.gemm;
  const GemmShape wide{.m = 1, .n = 8'192, .k = 8'192};
  GemmShape narrow = wide;
  narrow.type = DataType::Fp8;
  CHECK(gemm_seconds(gpu, narrow) == doctest::Approx(0.5 * gemm_seconds(gpu, wide)).epsilon(1e-2));
}

TEST_CASE("each data type runs at its own peak") {
  Gpu gpu = plain_gpu();
  gpu.peak_fp8_tflops.value = 200.0;
  gpu.peak_tf32_tflops.value = 50.0;
  gpu.profile.gemm_fp8 = gpu.profile.gemm;
  const auto rate = [&](DataType type) {
    const GemmShape shape{.m = 25'600, .n = 12'800, .k = 12'800, .type = type};
    return shape.flops() / gemm_seconds(gpu, shape);
  };
  CHECK(rate(DataType::Bf16) == doctest::Approx(100e12).epsilon(1e-3));
  CHECK(rate(DataType::Fp8) == doctest::Approx(200e12).epsilon(1e-3));
  CHECK(rate(DataType::Mxfp8) == doctest::Approx(200e12).epsilon(1e-3));
  CHECK(rate(DataType::Tf32) == doctest::Approx(50e12).epsilon(1e-3));
}

TEST_CASE("data types that a GPU lacks are infeasible, by name") {
  const Gpu a100 = load_gpu("a100-80gb");
  const auto product = test::error_of(
      [&] { gemm_seconds(a100, {.m = 128, .n = 128, .k = 128, .type = DataType::Fp8}); });
  CHECK(product.kind() == ErrorKind::Infeasible);
  CHECK(product.where() == "GPU a100-80gb");
  CHECK(product.message().find("matrix products in fp8") != std::string::npos);
  const Gpu h100 = load_gpu("h100");
  const auto attention = test::error_of([&] {
    attention_seconds(
        h100, {.tokens = 8, .pairs = 64, .heads = 1, .head_dim = 128, .type = DataType::Mxfp8});
  });
  CHECK(attention.kind() == ErrorKind::Infeasible);
  CHECK(attention.message().find("fused attention in mxfp8") != std::string::npos);
}

TEST_CASE("groups of equal rows are a batch, and one group is a product") {
  const Gpu gpu = load_gpu("h100");
  GemmShape shape{.m = 700, .n = 4'096, .k = 7'168};
  const std::array<std::int64_t, 1> one = {700};
  CHECK(grouped_gemm_seconds(gpu, shape, one) == gemm_seconds(gpu, shape));
  const std::array<std::int64_t, 4> four = {700, 700, 700, 700};
  const double grouped = grouped_gemm_seconds(gpu, shape, four);
  shape.batch = 4;
  CHECK(grouped == doctest::Approx(gemm_seconds(gpu, shape)));
}

TEST_CASE("tiles of all groups fill the waves together, and each group pads its own") {
  Gpu gpu = plain_gpu();
  gpu.profile.gemm.smooth_waves.value = 0.0;
  gpu.profile.gemm.prologue_k.value = 1e6;  // splitting k never pays
  gpu.memory_gbytes_per_s.value = 1e9;
  const GemmShape shape{.n = 128, .k = 1'024};
  const auto seconds = [&](std::vector<std::int64_t> rows) {
    return grouped_gemm_seconds(gpu, shape, rows);
  };
  // 100 multiprocessors. 50 groups of 256 rows fill one wave of 128 x 128 tiles, so do 100 of 128;
  // a group of one row more takes a tile more, and with it a wave of its own.
  const double wave = seconds(std::vector<std::int64_t>(100, 128));
  CHECK(seconds(std::vector<std::int64_t>(50, 256)) == doctest::Approx(wave));
  std::vector<std::int64_t> uneven(100, 128);
  uneven[0] = 129;
  CHECK(seconds(uneven) == doctest::Approx(2.0 * wave));
  // Groups without rows cost nothing.
  std::vector<std::int64_t> with_empty(100, 128);
  with_empty.resize(160, 0);
  CHECK(seconds(with_empty) == wave);
  CHECK(seconds({0, 0}) == 0.0);
}

TEST_CASE("a group reads its own weights once") {
  Gpu gpu = plain_gpu();
  gpu.peak_bf16_tflops.value = 1e6;
  const GemmShape shape{.n = 8'192, .k = 8'192};
  const std::array<std::int64_t, 1> one = {1};
  const std::array<std::int64_t, 3> three = {1, 1, 1};
  CHECK(grouped_gemm_seconds(gpu, shape, three) ==
        doctest::Approx(3.0 * grouped_gemm_seconds(gpu, shape, one)).epsilon(1e-2));
}

TEST_CASE("attention counts 4 FLOPs per pair, head and dimension, and 2.5 times as many backward") {
  const AttentionShape forward{.tokens = 8, .pairs = 64.0, .heads = 2, .head_dim = 16};
  CHECK(forward.flops() == 4.0 * 64 * 2 * 16);
  AttentionShape backward = forward;
  backward.backward = true;
  CHECK(backward.flops() == 2.5 * forward.flops());
}

TEST_CASE("values narrower than keys: two products with keys and values, backward three and two") {
  const AttentionShape forward{
      .tokens = 8, .pairs = 64.0, .heads = 2, .head_dim = 192, .value_dim = 128};
  CHECK(forward.flops() == 2.0 * 64 * 2 * (192 + 128));
  AttentionShape backward = forward;
  backward.backward = true;
  CHECK(backward.flops() == 2.0 * 64 * 2 * (3 * 192 + 2 * 128));
}

TEST_CASE("attention pads its head dimension to one that kernels are compiled for") {
  const auto seconds = [](int head_dim) {
    return attention_seconds(
        plain_gpu(),
        {.tokens = 4'096, .pairs = 4'096.0 * 4'096.0, .heads = 8, .head_dim = head_dim});
  };
  CHECK(seconds(112) == doctest::Approx(seconds(128)).epsilon(1e-3));
  CHECK(seconds(128) == doctest::Approx(4.0 * 4'096.0 * 4'096.0 * 8 * 128 / 50e12).epsilon(1e-3));
  // At 64 half the work runs at half the speed; at 96 three quarters at three quarters.
  CHECK(seconds(64) == doctest::Approx(seconds(128)).epsilon(1e-3));
  CHECK(seconds(96) == doctest::Approx(seconds(128)).epsilon(1e-3));
  CHECK(seconds(192) == doctest::Approx(1.5 / 0.9 * seconds(128)).epsilon(1e-3));
  CHECK(seconds(256) == doctest::Approx(2.0 * seconds(128)).epsilon(1e-3));
}

TEST_CASE("keys that a query of a window sees add up to what a loop counts") {
  for (const int tokens : {1, 5, 100}) {
    for (const int window : {1, 3, 5, 99, 100, 1'000}) {
      double pairs = 0.0;
      for (int query = 1; query <= tokens; ++query) {
        pairs += std::min(query, window);
      }
      CHECK(window_pairs(tokens, window) == pairs);
    }
  }
}

TEST_CASE(
    "masked pairs in tiles on an edge cost time: the diagonal, and the far edge of a window") {
  Gpu gpu = plain_gpu();
  gpu.profile.attention_forward.edge_pairs.value = 100.0;
  gpu.profile.attention_forward.window_pairs.value = 50.0;
  const auto seconds = [&](double pairs, bool causal, std::int64_t window) {
    return attention_seconds(gpu, {.tokens = 2'000,
                                   .pairs = pairs,
                                   .heads = 8,
                                   .head_dim = 128,
                                   .causal = causal,
                                   .window = window});
  };
  const double full = seconds(2'000.0 * 900.0, false, 0);
  CHECK(seconds(2'000.0 * 800.0, true, 0) == full);
  CHECK(seconds(2'000.0 * 750.0, true, 512) == full);
}

TEST_CASE("backward in 8 bits visits what lies outside the window, other kernels leave it out") {
  Gpu gpu = plain_gpu();
  gpu.peak_fp8_tflops.value = 100.0;
  gpu.profile.attention_forward_fp8 = plain_attention();
  gpu.profile.attention_backward_fp8 = plain_attention();
  AttentionShape shape{.tokens = std::int64_t{4} * 8'192,
                       .pairs = 4 * window_pairs(8'192, 128),
                       .heads = 8,
                       .head_dim = 128,
                       .causal = true,
                       .window = 128,
                       .sequences = 4};
  AttentionShape causal = shape;
  causal.window = 0;
  causal.pairs = 4 * 0.5 * 8'192.0 * 8'192.0;
  for (const bool backward : {false, true}) {
    for (const DataType type : {DataType::Bf16, DataType::Fp8}) {
      shape.backward = causal.backward = backward;
      shape.type = causal.type = type;
      const double windowed = attention_seconds(gpu, shape);
      const double everything = attention_seconds(gpu, causal);
      if (backward && type == DataType::Fp8) {
        CHECK(windowed == doctest::Approx(everything));
      } else {
        CHECK(windowed < 0.1 * everything);
      }
    }
  }
}

TEST_CASE("many short sequences are bound by reading queries, keys and values") {
  Gpu gpu = plain_gpu();
  gpu.peak_bf16_tflops.value = 1e6;
  AttentionShape shape{.tokens = 1'000'000, .pairs = 1e6 * 64, .heads = 32, .head_dim = 128};
  // Queries and results of 32 heads, keys and values of 32, in 2 bytes at 500 GB/s.
  CHECK(attention_seconds(gpu, shape) ==
        doctest::Approx(4.0 * 1e6 * 32 * 128 * 2 / 500e9).epsilon(1e-2));
  // Grouped queries share keys and values: 8 heads of them leave 62.5 %.
  shape.kv_heads = 8;
  CHECK(attention_seconds(gpu, shape) ==
        doctest::Approx(2.5 * 1e6 * 32 * 128 * 2 / 500e9).epsilon(1e-2));
}

TEST_CASE("a deterministic backward has its own curve, or that of the other one") {
  Gpu gpu = plain_gpu();
  AttentionShape shape{
      .tokens = 4'096, .pairs = 4'096.0 * 4'096.0, .heads = 8, .head_dim = 128, .backward = true};
  const double other = attention_seconds(gpu, shape);
  shape.deterministic = true;
  CHECK(attention_seconds(gpu, shape) == other);
  gpu.profile.attention_backward_deterministic = plain_attention();
  gpu.profile.attention_backward_deterministic->peak_fraction.value = 0.25;
  CHECK(attention_seconds(gpu, shape) == doctest::Approx(2.0 * other).epsilon(1e-3));
  shape.backward = false;
  CHECK(attention_seconds(gpu, shape) < other);
}

TEST_CASE("a kernel bound by memory takes its start-up and bytes over bandwidth") {
  CHECK(memory_seconds(plain_gpu(), 1e9) == doctest::Approx(3e-6 + 1e9 / 500e9));
}

TEST_CASE("nothing to do takes no time") {
  const Cluster cluster = load_cluster("h800-64");
  CHECK(gemm_seconds(cluster.gpu, {.m = 0, .n = 128, .k = 128}) == 0.0);
  CHECK(attention_seconds(cluster.gpu, {.tokens = 0, .heads = 8, .head_dim = 128}) == 0.0);
  CHECK(memory_seconds(cluster.gpu, 0.0) == 0.0);
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
    for (std::int64_t tokens = 1; tokens <= 40'000; tokens += 61) {
      const auto t = static_cast<double>(tokens);
      const double next_gemm = gemm_seconds(cluster.gpu, {.m = tokens, .n = 1'344, .k = 1'792});
      const double next_attention = attention_seconds(
          cluster.gpu, {.tokens = tokens, .pairs = t * t, .heads = 2, .head_dim = 112});
      REQUIRE(next_gemm >= gemm);
      REQUIRE(next_attention >= attention);
      gemm = next_gemm;
      attention = next_attention;
    }
  }
}
