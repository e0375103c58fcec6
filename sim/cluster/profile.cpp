// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/profile.hpp"

#include "sim/cluster/parameter_file.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <optional>
#include <string>
#include <utility>

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

constexpr std::array<ParameterField<AttentionCurve>, 8> kAttentionFields = {{
    {"start_up_us", &AttentionCurve::start_up_us, 0.0, kMaxMicroseconds},
    {"row_ns", &AttentionCurve::row_ns, 0.0, 1e6},
    {"edge_pairs", &AttentionCurve::edge_pairs, 0.0, 1e5},
    {"window_pairs", &AttentionCurve::window_pairs, 0.0, 1e5},
    {"peak_fraction", &AttentionCurve::peak_fraction, 1e-3, 1.0},
    {"at_64", &AttentionCurve::at_64, 1e-2, 2.0},
    {"at_192", &AttentionCurve::at_192, 1e-2, 2.0},
    {"at_256", &AttentionCurve::at_256, 1e-2, 2.0},
}};

constexpr std::array<ParameterField<BandwidthCurve>, 2> kMemoryFields = {{
    {"start_up_us", &BandwidthCurve::start_up_us, 0.0, kMaxMicroseconds},
    {"bandwidth_fraction", &BandwidthCurve::bandwidth_fraction, 1e-3, 1.0},
}};

constexpr std::array<ParameterField<AttentionSpeeds>, 4> kSpeedFields = {{
    {"flash2_forward", &AttentionSpeeds::flash2_forward, 1e-2, 1.0},
    {"flash2_backward", &AttentionSpeeds::flash2_backward, 1e-2, 1.0},
    {"triton_forward", &AttentionSpeeds::triton_forward, 1e-2, 1.0},
    {"triton_backward", &AttentionSpeeds::triton_backward, 1e-2, 1.0},
}};

constexpr std::array<ParameterField<IssueRate>, 2> kIssueFields = {{
    {"kernel_us", &IssueRate::kernel_us, 0.0, kMaxMicroseconds},
    {"pass_us", &IssueRate::pass_us, 0.0, kMaxMicroseconds},
}};

constexpr std::array<ParameterField<ProtocolCurve>, 5> kProtocolFields = {{
    {"base_us", &ProtocolCurve::base_us, 0.0, kMaxMicroseconds},
    {"nvlink_hop_us", &ProtocolCurve::nvlink_hop_us, 0.0, kMaxMicroseconds},
    {"nic_hop_us", &ProtocolCurve::nic_hop_us, 0.0, kMaxMicroseconds},
    {"nvlink_fraction", &ProtocolCurve::nvlink_fraction, 1e-3, 1.0},
    {"nic_fraction", &ProtocolCurve::nic_fraction, 0.0, 1.0},
}};

/// Simple runs everywhere: it has a speed between nodes.
constexpr std::array<ParameterField<ProtocolCurve>, 5> kSimpleFields = {{
    kProtocolFields[0],
    kProtocolFields[1],
    kProtocolFields[2],
    kProtocolFields[3],
    {"nic_fraction", &ProtocolCurve::nic_fraction, 1e-3, 1.0},
}};

constexpr std::array<ParameterField<NvlsCurve>, 4> kNvlsFields = {{
    {"base_us", &NvlsCurve::base_us, 0.0, kMaxMicroseconds},
    {"nvlink_fraction", &NvlsCurve::nvlink_fraction, 1e-3, 1.0},
    {"ramp_us", &NvlsCurve::ramp_us, 0.0, kMaxMicroseconds},
    {"ramp_mbytes", &NvlsCurve::ramp_mbytes, 1e-6, 1e6},
}};

constexpr std::array<ParameterField<NvlsTreeCurve>, 4> kNvlsTreeFields = {{
    {"base_us", &NvlsTreeCurve::base_us, 0.0, kMaxMicroseconds},
    {"nic_hop_us", &NvlsTreeCurve::nic_hop_us, 0.0, kMaxMicroseconds},
    {"two_nodes_nic_fraction", &NvlsTreeCurve::two_nodes_nic_fraction, 1e-3, 1.0},
    {"nic_fraction", &NvlsTreeCurve::nic_fraction, 1e-3, 1.0},
}};

constexpr std::array<ParameterField<AllToAllCurve>, 4> kAllToAllFields = {{
    {"base_us", &AllToAllCurve::base_us, 0.0, kMaxMicroseconds},
    {"nvlink_peer_us", &AllToAllCurve::nvlink_peer_us, 0.0, kMaxMicroseconds},
    {"nic_peer_us", &AllToAllCurve::nic_peer_us, 0.0, kMaxMicroseconds},
    {"nvlink_fraction", &AllToAllCurve::nvlink_fraction, 1e-3, 1.0},
}};

constexpr std::array<ParameterField<ChannelRule>, 3> kChannelFields = {{
    {"per_peer", &ChannelRule::per_peer, 1.0, 1e3},
    {"total", &ChannelRule::total, 1.0, 1e4},
    {"gbytes_per_s", &ChannelRule::gbytes_per_s, 1e-3, 1e5},
}};

constexpr std::array<ParameterField<LinkCurve>, 2> kLinkFields = {{
    {"latency_us", &LinkCurve::latency_us, 0.0, kMaxMicroseconds},
    {"bandwidth_fraction", &LinkCurve::bandwidth_fraction, 1e-3, 1.0},
}};

constexpr std::array<ParameterField<OverlapCost>, 1> kOverlapFields = {{
    {"compute_slowdown", &OverlapCost::compute_slowdown, 0.0, 10.0},
}};

/// Calls f(key, curve of the profile, fields of that curve) for every curve, in file order; curves
/// that a GPU may lack come as optionals.
template <class Profile, class F>
void for_each_curve(Profile& profile, const F& f) {
  f("gemm", profile.gemm, std::span(kGemmFields));
  f("gemm_fp8", profile.gemm_fp8, std::span(kGemmFields));
  f("attention_forward", profile.attention_forward, std::span(kAttentionFields));
  f("attention_backward", profile.attention_backward, std::span(kAttentionFields));
  f("attention_backward_deterministic", profile.attention_backward_deterministic,
    std::span(kAttentionFields));
  f("attention_forward_fp8", profile.attention_forward_fp8, std::span(kAttentionFields));
  f("attention_backward_fp8", profile.attention_backward_fp8, std::span(kAttentionFields));
  f("attention_forward_mxfp8", profile.attention_forward_mxfp8, std::span(kAttentionFields));
  f("attention_backward_mxfp8", profile.attention_backward_mxfp8, std::span(kAttentionFields));
  f("attention_speeds", profile.attention_speeds, std::span(kSpeedFields));
  f("memory", profile.memory, std::span(kMemoryFields));
  f("host_issue", profile.host_issue, std::span(kIssueFields));
  f("ring_ll", profile.ring_ll, std::span(kProtocolFields));
  f("ring_ll128", profile.ring_ll128, std::span(kProtocolFields));
  f("ring_simple", profile.ring_simple, std::span(kSimpleFields));
  f("tree_ll", profile.tree_ll, std::span(kProtocolFields));
  f("tree_ll128", profile.tree_ll128, std::span(kProtocolFields));
  f("tree_simple", profile.tree_simple, std::span(kSimpleFields));
  f("nvls", profile.nvls, std::span(kNvlsFields));
  f("nvls_tree", profile.nvls_tree, std::span(kNvlsTreeFields));
  f("all_to_all", profile.all_to_all, std::span(kAllToAllFields));
  f("p2p_nvlink", profile.p2p_nvlink, std::span(kLinkFields));
  f("p2p_nic", profile.p2p_nic, std::span(kLinkFields));
  f("p2p_channels", profile.p2p_channels, std::span(kChannelFields));
  f("host", profile.host, std::span(kLinkFields));
  f("overlap", profile.overlap, std::span(kOverlapFields));
}

/// Reads one curve after the other.
struct Reader {
  JsonObject& object;

  template <class Curve, class Fields>
  void operator()(std::string_view key, Curve& curve, Fields fields) const {
    curve = read_group<Curve>(object.at(key), fields);
  }

  template <class Curve, class Fields>
  void operator()(std::string_view key, std::optional<Curve>& curve, Fields fields) const {
    if (const auto value = object.find(key)) {
      curve = read_group<Curve>(*value, fields);
    }
  }
};

/// The curve, whether a GPU may lack it or not; null where it does.
template <class Curve>
const Curve* present(const Curve& curve) {
  return &curve;
}

template <class Curve>
const Curve* present(const std::optional<Curve>& curve) {
  return curve ? &*curve : nullptr;
}

template <class F>
void for_each_present_curve(const HardwareProfile& profile, const F& f) {
  for_each_curve(profile, [&](std::string_view key, const auto& curve, auto fields) {
    if (const auto* const there = present(curve)) {
      f(key, *there, fields);
    }
  });
}

}  // namespace

HardwareProfile read_profile(const JsonValue& value) {
  JsonObject object = value.object();
  HardwareProfile profile;
  for_each_curve(profile, Reader{object});
  object.finish();
  if (profile.nvls_tree && !profile.nvls) {
    value.fail("has \"nvls_tree\" but no \"nvls\": trees of switches need switches that add up");
  }
  return profile;
}

HardwareProfile load_profile(const std::filesystem::path& path) {
  const JsonDocument document = JsonDocument::from_file(path);
  return read_profile(document.root());
}

nlohmann::json to_json(const HardwareProfile& profile) {
  nlohmann::json out;
  for_each_present_curve(profile,
                         [&]<class Curve>(std::string_view key, const Curve& curve, auto fields) {
                           out[key] = group_json(group_parameters<Curve>(curve, fields));
                         });
  return out;
}

std::vector<NamedParameter> parameters(const HardwareProfile& profile) {
  std::vector<NamedParameter> out;
  for_each_present_curve(
      profile, [&]<class Curve>(std::string_view key, const Curve& curve, auto fields) {
        for (NamedParameter& parameter : group_parameters<Curve>(curve, fields)) {
          out.push_back({std::string(key) + "." + parameter.name, std::move(parameter.parameter)});
        }
      });
  return out;
}

}  // namespace dipsim
