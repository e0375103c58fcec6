// SPDX-License-Identifier: Apache-2.0
// The attention curves of the shipped GPUs. What is fitted for one GPU or kernel is the prior of
// the next: H100 figures → H200 → GB200, GB300 → B200; H200 → H100, H800, H20, A100.
#include "hw/fit/kernel_fit.hpp"
#include "validate/kernel_rows.hpp"
#include "validate/refit.hpp"

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

using Curve = AttentionCurve;

const std::string kFigures = "arXiv:2407.08608 figure labels (cuDNN on H100)";
const std::string kFlashAttention4 =
    "Dao-AILab/flash-attention PR #2605 (FlashAttention-4 on a Blackwell GPU)";

/// Start of the first fit; stays where no measurement says otherwise.
Curve unknown_curve() {
  const auto neutral = [](double value) {
    return Parameter{value, Evidence::Prior, "no measurement: a round number"};
  };
  return {.start_up_us = neutral(5.0),
          .row_ns = neutral(20.0),
          .edge_pairs = neutral(100.0),
          .window_pairs = neutral(100.0),
          .peak_fraction = neutral(0.6),
          .at_64 = neutral(1.0),
          .at_192 = neutral(1.0),
          .at_256 = neutral(1.0)};
}

/// A backward kernel before any fit: three kernels, head factors as forward.
Curve backward_prior(const Curve& forward) {
  Curve prior = carried(forward, "forward");
  prior.start_up_us.value = rounded(3.0 * prior.start_up_us.value);
  return prior;
}

class AttentionRefit {
 public:
  AttentionRefit(GpusByName& gpus, const CsvTable& attention_cudnn, const CsvTable& attention)
      : gpus_(gpus), cudnn_(attention_cudnn_rows(attention_cudnn)) {
    std::vector<UnusableRow> unusable;
    others_ = attention_rows(attention, unusable);
  }

  void run() {
    hopper();
    h20();
    blackwell("gb200", "GB200");
    blackwell("gb300", "GB300");
    carry_all("b200", "gb200", "GB200");
    ampere();
  }

 private:
  HardwareProfile& profile(const std::string& name) { return gpus_.at(name).profile; }

  static std::vector<AttentionSample> samples_where(
      const std::vector<AttentionRow>& rows,
      const std::function<bool(const AttentionRow&)>& holds) {
    std::vector<AttentionSample> samples;
    for (const AttentionRow& row : rows) {
      if (row.fitted && holds(row)) {
        samples.push_back({row.shape, row.seconds});
      }
    }
    return samples;
  }

  /// A fit to rows of attention_cudnn.csv; `deterministic` keeps to kernels that are or are not.
  Curve fit(const std::string& name, const std::string& source, const Curve& prior, DataType type,
            bool backward, std::optional<bool> deterministic = std::nullopt) {
    const auto holds = [&](const AttentionRow& row) {
      return row.gpu == name && row.shape.type == type && row.shape.backward == backward &&
             (!deterministic || row.shape.deterministic == *deterministic);
    };
    return rounded(fit_attention(gpus_.at(name), prior, samples_where(cudnn_, holds), source));
  }

  /// A fit to forward rows of attention.csv.
  Curve fit_others(const std::string& name, const std::string& source, const Curve& prior,
                   DataType type, AttentionUnknowns unknowns) {
    const auto holds = [&](const AttentionRow& row) {
      return row.gpu == name && row.shape.type == type && !row.shape.backward;
    };
    return rounded(
        fit_attention(gpus_.at(name), prior, samples_where(others_, holds), source, unknowns));
  }

  /// Head factors from older kernels on H100, everything else from cuDNN 9.19 on H200.
  void hopper() {
    const std::string source = kCudnnAttentionSource + " (H200, cuDNN 9.19.1, every second shape)";
    HardwareProfile& h200 = profile("h200");
    const auto factors = [&](DataType type) {
      const Curve old = fit_others("h100", kFigures, unknown_curve(), type, AttentionUnknowns::All);
      Curve prior = unknown_curve();
      prior.at_64 = old.at_64;
      prior.at_256 = old.at_256;
      return prior;
    };
    const Curve wide = factors(DataType::Bf16);
    const Curve fp8 = factors(DataType::Fp8);
    h200.attention_forward = fit("h200", source, carried(wide, "H100"), DataType::Bf16, false);
    h200.attention_backward =
        fit("h200", source, backward_prior(h200.attention_forward), DataType::Bf16, true);
    h200.attention_backward_deterministic.reset();
    const Curve fp8_forward = fit("h200", source, carried(fp8, "H100"), DataType::Fp8, false);
    h200.attention_forward_fp8 = fp8_forward;
    h200.attention_backward_fp8 =
        fit("h200", source, backward_prior(fp8_forward), DataType::Fp8, true);
    for (const std::string name : {"h100", "h800", "h20"}) {
      carry_all(name, "h200", "H200");
    }
    const auto own_factors = [](Curve& curve, const Curve& own) {
      curve.at_64 = own.at_64;
      curve.at_256 = own.at_256;
    };
    own_factors(profile("h100").attention_forward, wide);
    own_factors(profile("h100").attention_forward_fp8.emplace(carried(fp8_forward, "H200")), fp8);
  }

  void carry_all(const std::string& name, const std::string& from_name, const std::string& from) {
    HardwareProfile& to = profile(name);
    const HardwareProfile& of = profile(from_name);
    const auto optional = [&](const std::optional<Curve>& curve) {
      return curve ? std::optional(carried(*curve, from)) : std::nullopt;
    };
    to.attention_forward = carried(of.attention_forward, from);
    to.attention_backward = carried(of.attention_backward, from);
    to.attention_backward_deterministic = optional(of.attention_backward_deterministic);
    to.attention_forward_fp8 = optional(of.attention_forward_fp8);
    to.attention_backward_fp8 = optional(of.attention_backward_fp8);
    to.attention_forward_mxfp8 = optional(of.attention_forward_mxfp8);
    to.attention_backward_mxfp8 = optional(of.attention_backward_mxfp8);
  }

  /// H20 multiplies so slowly that tensor cores bind where exponentials do on H100: its rates are
  /// its own. Backward by the same ratios.
  void h20() {
    const std::string source = "Dao-AILab/flash-attention issue #1310 (cuDNN on H20)";
    HardwareProfile& h20 = profile("h20");
    h20.attention_forward =
        fit_others("h20", source, h20.attention_forward, DataType::Bf16, AttentionUnknowns::Rates);
    scale_backward("h20", source, {&Curve::peak_fraction, &Curve::at_64});
  }

  /// Backward parameters as forward, times backward over forward on H200.
  void scale_backward(const std::string& name, const std::string& source,
                      std::initializer_list<Parameter Curve::*> members) {
    const HardwareProfile& h200 = profile("h200");
    HardwareProfile& to = profile(name);
    for (const auto member : members) {
      const double own = (to.attention_forward.*member).value;
      const double ratio =
          (h200.attention_backward.*member).value / (h200.attention_forward.*member).value;
      to.attention_backward.*member = {rounded(own * ratio), Evidence::Prior,
                                       source + ", forward, times backward over forward on H200"};
    }
  }

  void blackwell(const std::string& name, const std::string& title) {
    const std::string source =
        kCudnnAttentionSource + " (" + title + ", cuDNN 9.22, every second shape)";
    HardwareProfile& p = profile(name);
    const HardwareProfile& h200 = profile("h200");
    Curve prior = carried(h200.attention_forward, "H200");
    const Curve four =
        fit_others("gb200", kFlashAttention4, prior, DataType::Bf16, AttentionUnknowns::All);
    prior.at_64 = {four.at_64.value, Evidence::Prior, kFlashAttention4};
    p.attention_forward = fit(name, source, prior, DataType::Bf16, false);
    const Curve backward = backward_prior(p.attention_forward);
    p.attention_backward = fit(name, source, backward, DataType::Bf16, true, false);
    p.attention_backward_deterministic = fit(name, source, backward, DataType::Bf16, true, true);
    const auto eight_bit = [&](DataType type, std::optional<Curve>& f, std::optional<Curve>& b) {
      f = fit(name, source, carried(*h200.attention_forward_fp8, "H200"), type, false);
      b = fit(name, source, backward_prior(*f), type, true);
    };
    eight_bit(DataType::Fp8, p.attention_forward_fp8, p.attention_backward_fp8);
    eight_bit(DataType::Mxfp8, p.attention_forward_mxfp8, p.attention_backward_mxfp8);
  }

  /// Rates from the kernels of one forum thread. A row costs as many pairs' worth of time as on
  /// H200.
  void ampere() {
    const std::string source = "pytorch/pytorch PR #126122 (FlashAttention-2 on A100)";
    carry_all("a100-80gb", "h200", "H200");
    Gpu& a100 = gpus_.at("a100-80gb");
    HardwareProfile& p = a100.profile;
    p.attention_forward_fp8.reset();
    p.attention_backward_fp8.reset();
    p.attention_forward = fit_others("a100-80gb", source, p.attention_forward, DataType::Bf16,
                                     AttentionUnknowns::Rates);
    scale_backward("a100-80gb", source, {&Curve::peak_fraction, &Curve::at_64});
    scale_rows(a100, p.attention_forward);
    scale_rows(a100, p.attention_backward);
    p.attention_forward = fit_others("a100-80gb", source, p.attention_forward, DataType::Bf16,
                                     AttentionUnknowns::Rates);
    scale_backward("a100-80gb", source, {&Curve::peak_fraction, &Curve::at_64});
  }

  /// row_ns of H200 in proportion to the time that a multiprocessor takes per FLOP.
  void scale_rows(const Gpu& gpu, Curve& curve) {
    const Gpu& h200 = gpus_.at("h200");
    const auto flops_per_multiprocessor = [](const Gpu& g, const Curve& c) {
      return g.peak_flops_per_s() * c.peak_fraction.value / g.multiprocessors.value;
    };
    const bool backward = &curve == &gpu.profile.attention_backward;
    const Curve& of = backward ? h200.profile.attention_backward : h200.profile.attention_forward;
    curve.row_ns.value = rounded(of.row_ns.value * flops_per_multiprocessor(h200, of) /
                                 flops_per_multiprocessor(gpu, curve));
    curve.row_ns.source += ", in proportion to the time per FLOP";
  }

  GpusByName& gpus_;
  std::vector<AttentionRow> cudnn_;
  std::vector<AttentionRow> others_;
};

}  // namespace

void refit_attention(GpusByName& gpus, const CsvTable& attention_cudnn, const CsvTable& attention) {
  AttentionRefit(gpus, attention_cudnn, attention).run();
}

}  // namespace dipsim
