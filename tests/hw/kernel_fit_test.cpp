// SPDX-License-Identifier: Apache-2.0
// Fits to times that the curves themselves gave: the planted parameters come back.
#include "hw/fit/kernel_fit.hpp"

#include "tests/support/error_of.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace dipsim;

Parameter planted(double value) { return {value, Evidence::Prior, "planted"}; }

GemmCurve planted_gemm(double peak) {
  return {.start_up_us = planted(6.0),
          .peak_fraction = planted(peak),
          .prologue_k = planted(200.0),
          .smooth_waves = planted(0.3)};
}

AttentionCurve planted_attention() {
  return {.start_up_us = planted(7.0),
          .row_ns = planted(30.0),
          .edge_pairs = planted(150.0),
          .window_pairs = planted(80.0),
          .peak_fraction = planted(0.55),
          .at_64 = planted(0.6),
          .at_192 = planted(0.9),
          .at_256 = planted(1.1)};
}

AttentionCurve far_off() {
  return {.start_up_us = planted(3.0),
          .row_ns = planted(10.0),
          .edge_pairs = planted(50.0),
          .window_pairs = planted(300.0),
          .peak_fraction = planted(0.7),
          .at_64 = planted(1.0),
          .at_192 = planted(1.0),
          .at_256 = planted(1.0)};
}

AttentionShape attention_of(std::int64_t length, int head_dim, bool causal, std::int64_t window) {
  const auto s = static_cast<double>(length);
  const double pairs =
      window > 0 ? window_pairs(s, static_cast<double>(window)) : s * s * (causal ? 0.5 : 1.0);
  return {.tokens = length,
          .pairs = pairs,
          .heads = 16,
          .head_dim = head_dim,
          .causal = causal,
          .window = window};
}

std::vector<AttentionSample> attention_times(const Gpu& gpu,
                                             const std::vector<AttentionShape>& shapes) {
  std::vector<AttentionSample> samples;
  samples.reserve(shapes.size());
  for (const AttentionShape& shape : shapes) {
    samples.push_back({shape, attention_seconds(gpu, shape)});
  }
  return samples;
}

std::vector<AttentionShape> shapes_at(std::initializer_list<int> head_dims) {
  std::vector<AttentionShape> shapes;
  for (const int head_dim : head_dims) {
    for (const std::int64_t length : {512, 1'024, 2'048, 8'192, 32'768}) {
      shapes.push_back(attention_of(length, head_dim, false, 0));
      shapes.push_back(attention_of(length, head_dim, true, 0));
    }
  }
  return shapes;
}

bool fitted(const Parameter& parameter) {
  return parameter.evidence == Evidence::Fitted && parameter.source == "a test";
}

}  // namespace

TEST_CASE("a product curve is recovered from its own times, on two GPUs and in two types at once") {
  Gpu h100 = load_gpu("h100");
  h100.profile.gemm = planted_gemm(0.8);
  h100.profile.gemm_fp8 = planted_gemm(0.65);
  Gpu h200 = h100;
  h200.memory_gbytes_per_s.value = 4'800.0;
  std::vector<GemmSample> samples;
  for (const std::int64_t size : {256, 640, 1'024, 2'048, 4'096, 5'000, 8'192}) {
    for (const DataType type : {DataType::Bf16, DataType::Fp8}) {
      for (const Gpu* const gpu : {&h100, &h200}) {
        const GemmShape shape{.m = size, .n = 2 * size, .k = size, .type = type};
        samples.push_back({gpu, shape, gemm_seconds(*gpu, shape)});
      }
    }
  }
  const GemmFit fit = fit_gemm(samples, "a test");
  if (!fit.wide || !fit.fp8) {
    FAIL("a curve is missing");
    return;
  }
  CHECK(fit.wide->start_up_us.value == doctest::Approx(6.0).epsilon(1e-3));
  CHECK(fit.wide->prologue_k.value == doctest::Approx(200.0).epsilon(1e-3));
  CHECK(fit.wide->smooth_waves.value == doctest::Approx(0.3).epsilon(1e-3));
  CHECK(fit.wide->peak_fraction.value == doctest::Approx(0.8).epsilon(1e-3));
  CHECK(fit.fp8->peak_fraction.value == doctest::Approx(0.65).epsilon(1e-3));
  CHECK(fitted(fit.fp8->prologue_k));
}

TEST_CASE("a product curve exists only for types that were measured") {
  const Gpu h100 = load_gpu("h100");
  const GemmShape shape{.m = 4'096, .n = 4'096, .k = 4'096};
  const std::vector<GemmSample> samples = {{&h100, shape, gemm_seconds(h100, shape)}};
  const GemmFit fit = fit_gemm(samples, "a test");
  CHECK(fit.wide.has_value());
  CHECK(!fit.fp8.has_value());
}

TEST_CASE("an attention curve is recovered from its own times") {
  Gpu gpu = load_gpu("h200");
  gpu.profile.attention_forward = planted_attention();
  std::vector<AttentionShape> shapes = shapes_at({64, 128, 192, 256});
  for (const std::int64_t length : {4'096, 16'384}) {
    shapes.push_back(attention_of(length, 64, true, 512));
  }
  const AttentionCurve curve =
      fit_attention(gpu, far_off(), attention_times(gpu, shapes), "a test");
  const AttentionCurve wanted = planted_attention();
  CHECK(curve.start_up_us.value == doctest::Approx(wanted.start_up_us.value).epsilon(1e-2));
  CHECK(curve.row_ns.value == doctest::Approx(wanted.row_ns.value).epsilon(1e-2));
  CHECK(curve.edge_pairs.value == doctest::Approx(wanted.edge_pairs.value).epsilon(1e-2));
  CHECK(curve.window_pairs.value == doctest::Approx(wanted.window_pairs.value).epsilon(1e-2));
  CHECK(curve.peak_fraction.value == doctest::Approx(wanted.peak_fraction.value).epsilon(1e-3));
  CHECK(curve.at_64.value == doctest::Approx(wanted.at_64.value).epsilon(1e-3));
  CHECK(curve.at_192.value == doctest::Approx(wanted.at_192.value).epsilon(1e-3));
  CHECK(curve.at_256.value == doctest::Approx(wanted.at_256.value).epsilon(1e-3));
}

TEST_CASE("what the samples say nothing about stays as it was, provenance included") {
  const Gpu gpu = load_gpu("h200");
  std::vector<AttentionShape> shapes = shapes_at({128});
  std::erase_if(shapes, [](const AttentionShape& shape) { return shape.causal; });
  const AttentionCurve full = fit_attention(gpu, far_off(), attention_times(gpu, shapes), "a test");
  CHECK(fitted(full.peak_fraction));
  CHECK(full.edge_pairs == far_off().edge_pairs);
  CHECK(full.window_pairs == far_off().window_pairs);
  CHECK(full.at_64 == far_off().at_64);
  CHECK(full.at_256 == far_off().at_256);

  // Under a window alone a head factor cannot be told from what the edge of the window costs.
  shapes.push_back(attention_of(8'192, 64, true, 512));
  const AttentionCurve windowed =
      fit_attention(gpu, far_off(), attention_times(gpu, shapes), "a test");
  CHECK(fitted(windowed.window_pairs));
  CHECK(windowed.at_64 == far_off().at_64);
}

TEST_CASE("a fit of the rates leaves start-up, rows and edges alone") {
  const Gpu gpu = load_gpu("h200");
  const AttentionCurve curve =
      fit_attention(gpu, far_off(), attention_times(gpu, shapes_at({64, 128})), "a test",
                    AttentionUnknowns::Rates);
  CHECK(fitted(curve.peak_fraction));
  CHECK(fitted(curve.at_64));
  CHECK(curve.start_up_us == far_off().start_up_us);
  CHECK(curve.row_ns == far_off().row_ns);
  CHECK(curve.edge_pairs == far_off().edge_pairs);
}

TEST_CASE("deterministic samples are fitted as what they are") {
  Gpu gpu = load_gpu("gb200");
  gpu.profile.attention_backward_deterministic = planted_attention();
  std::vector<AttentionShape> shapes = shapes_at({128});
  for (AttentionShape& shape : shapes) {
    shape.backward = true;
    shape.deterministic = true;
  }
  const AttentionCurve curve =
      fit_attention(gpu, far_off(), attention_times(gpu, shapes), "a test");
  CHECK(curve.peak_fraction.value == doctest::Approx(0.55).epsilon(1e-3));
}

TEST_CASE("memory: start-up and bandwidth, or the start-up alone") {
  const Gpu gpu = load_gpu("h200");
  std::vector<MemorySample> samples;
  for (const double bytes : {1e5, 1e7, 1e9}) {
    samples.push_back({bytes, 4e-6 + bytes / (0.8 * 4.8e12)});
  }
  const BandwidthCurve curve = fit_memory(gpu, samples, "a test");
  CHECK(curve.start_up_us.value == doctest::Approx(4.0).epsilon(1e-6));
  CHECK(curve.bandwidth_fraction.value == doctest::Approx(0.8).epsilon(1e-6));
  Gpu known = gpu;
  known.profile.memory.bandwidth_fraction.value = 0.8;
  CHECK(fit_memory_start(known, samples, "a test").value == doctest::Approx(4.0).epsilon(1e-6));
  // Kernels that are faster than the bandwidth have no negative start-up.
  known.profile.memory.bandwidth_fraction.value = 0.1;
  CHECK(fit_memory_start(known, samples, "a test").value == 0.0);
}

TEST_CASE("a fit without samples is refused") {
  const Gpu gpu = load_gpu("h200");
  const auto refusal = [](auto&& body) { return test::error_of(body).message(); };
  CHECK(refusal([] { fit_gemm({}, ""); }).find("no matrix product") != std::string::npos);
  CHECK(refusal([&] { fit_attention(gpu, far_off(), {}, ""); }).find("no attention") !=
        std::string::npos);
  CHECK(refusal([&] { fit_memory(gpu, {}, ""); }).find("no sample") != std::string::npos);
  CHECK(refusal([&] { fit_memory_start(gpu, {}, ""); }).find("no memory") != std::string::npos);
}
