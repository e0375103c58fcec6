// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/profile.hpp"

#include "sim/cluster/parameter_file.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <string>

namespace dipsim {

namespace {

// Ranges: wide enough for any accelerator, narrow enough to catch a wrong unit.
constexpr double kMaxMicroseconds = 1e5;

constexpr std::array<ParameterField<GemmCurve>, 4> kGemmFields = {{
    {"start_up_us", &GemmCurve::start_up_us, 0.0, kMaxMicroseconds},
    {"peak_fraction", &GemmCurve::peak_fraction, 1e-3, 1.0},
    {"prologue_k", &GemmCurve::prologue_k, 0.0, 1e5},
    {"smooth_waves", &GemmCurve::smooth_waves, 0.0, 1.0},
}};

constexpr std::array<ParameterField<AttentionCurve>, 3> kAttentionFields = {{
    {"start_up_us", &AttentionCurve::start_up_us, 0.0, kMaxMicroseconds},
    {"row_ns", &AttentionCurve::row_ns, 0.0, 1e6},
    {"peak_fraction", &AttentionCurve::peak_fraction, 1e-3, 1.0},
}};

constexpr std::array<ParameterField<HeadDimensionFactors>, 2> kHeadFields = {{
    {"at_64", &HeadDimensionFactors::at_64, 1e-2, 2.0},
    {"at_256", &HeadDimensionFactors::at_256, 1e-2, 2.0},
}};

constexpr std::array<ParameterField<BandwidthCurve>, 2> kMemoryFields = {{
    {"start_up_us", &BandwidthCurve::start_up_us, 0.0, kMaxMicroseconds},
    {"bandwidth_fraction", &BandwidthCurve::bandwidth_fraction, 1e-3, 1.0},
}};

constexpr std::array<ParameterField<CollectiveCurve>, 5> kCollectiveFields = {{
    {"base_us", &CollectiveCurve::base_us, 0.0, kMaxMicroseconds},
    {"hop_us", &CollectiveCurve::hop_us, 0.0, kMaxMicroseconds},
    {"bandwidth_fraction", &CollectiveCurve::bandwidth_fraction, 1e-3, 2.0},
    {"ramp_us", &CollectiveCurve::ramp_us, 0.0, kMaxMicroseconds},
    {"ramp_mbytes", &CollectiveCurve::ramp_mbytes, 1e-6, 1e6},
}};

constexpr std::array<ParameterField<LinkCurve>, 2> kLinkFields = {{
    {"latency_us", &LinkCurve::latency_us, 0.0, kMaxMicroseconds},
    {"bandwidth_fraction", &LinkCurve::bandwidth_fraction, 1e-3, 1.0},
}};

/// Calls f(key, curve of the profile, fields of that curve) for every curve, in file order.
template <class Profile, class F>
void for_each_curve(Profile& profile, const F& f) {
  f("gemm", profile.gemm, std::span(kGemmFields));
  f("attention_forward_full", profile.attention_forward_full, std::span(kAttentionFields));
  f("attention_forward_causal", profile.attention_forward_causal, std::span(kAttentionFields));
  f("attention_backward_full", profile.attention_backward_full, std::span(kAttentionFields));
  f("attention_backward_causal", profile.attention_backward_causal, std::span(kAttentionFields));
  f("head_dimension", profile.head_dimension, std::span(kHeadFields));
  f("memory", profile.memory, std::span(kMemoryFields));
  f("all_reduce_nvlink", profile.all_reduce_nvlink, std::span(kCollectiveFields));
  f("all_gather_nvlink", profile.all_gather_nvlink, std::span(kCollectiveFields));
  f("collective_nic", profile.collective_nic, std::span(kCollectiveFields));
  f("p2p_nvlink", profile.p2p_nvlink, std::span(kLinkFields));
  f("p2p_nic", profile.p2p_nic, std::span(kLinkFields));
  f("host", profile.host, std::span(kLinkFields));
}

}  // namespace

HardwareProfile read_profile(const JsonValue& value) {
  JsonObject object = value.object();
  HardwareProfile profile;
  for_each_curve(profile, [&]<class Curve>(std::string_view key, Curve& curve, auto fields) {
    curve = read_group<Curve>(object.at(key), fields);
  });
  object.finish();
  return profile;
}

HardwareProfile load_profile(const std::filesystem::path& path) {
  const JsonDocument document = JsonDocument::from_file(path);
  return read_profile(document.root());
}

nlohmann::json to_json(const HardwareProfile& profile) {
  nlohmann::json out;
  for_each_curve(profile, [&]<class Curve>(std::string_view key, const Curve& curve, auto fields) {
    out[key] = group_json(group_parameters<Curve>(curve, fields));
  });
  return out;
}

std::vector<NamedParameter> parameters(const HardwareProfile& profile) {
  std::vector<NamedParameter> out;
  for_each_curve(profile, [&]<class Curve>(std::string_view key, const Curve& curve, auto fields) {
    for (NamedParameter& parameter : group_parameters<Curve>(curve, fields)) {
      out.push_back({std::string(key) + "." + parameter.name, std::move(parameter.parameter)});
    }
  });
  return out;
}

}  // namespace dipsim
