// SPDX-License-Identifier: Apache-2.0
// How long one kernel or one message takes on a GPU: curves with fitted parameters, never one
// constant efficiency. docs/model.md, "cost of an operator", derives the forms.
#pragma once

#include "sim/cluster/parameter.hpp"
#include "sim/core/json.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace dipsim {

/// Matrix product C[m,n] = A[m,k] B[k,n] on tensor cores, the k of each output tile split s times:
///   T = s · ⌈m/tile_m⌉ · ⌈n/tile_n⌉ tiles on S multiprocessors,
///   waves = w·T/S + (1−w)·⌈T/S⌉,
///   t_math = waves · 2·tile_m·tile_n·(k/s + k0) · S / (peak · peak_fraction),
///   t_memory = (2·m·k + 2·k·n + c·m·n) / (memory bandwidth of BandwidthCurve), c bytes per output,
///              and 8·s more where s > 1 (partial sums in fp32),
///   t = start_up + (t_math^4 + t_memory^4)^(1/4), the least over tile shapes and s.
struct GemmCurve {
  Parameter start_up_us;
  Parameter peak_fraction;  ///< of the data-sheet peak, sustained by full waves
  Parameter prologue_k;     ///< k0: prologue and epilogue of a tile, in columns of k
  Parameter smooth_waves;   ///< w in [0, 1]: 0 counts whole waves, 1 has no tail effect
  friend bool operator==(const GemmCurve&, const GemmCurve&) = default;
};

/// Fused attention, forward or backward, full or causal:
///   t = start_up + row · tokens · heads / S + flops / (peak · peak_fraction · head factor),
/// flops as counted for the head dimension that the kernel pads to.
struct AttentionCurve {
  Parameter start_up_us;
  Parameter row_ns;         ///< per token and head, times the number of multiprocessors
  Parameter peak_fraction;  ///< at head dimension 128
  friend bool operator==(const AttentionCurve&, const AttentionCurve&) = default;
};

/// Speed of attention kernels at other head dimensions, relative to 128.
struct HeadDimensionFactors {
  Parameter at_64;
  Parameter at_256;
  friend bool operator==(const HeadDimensionFactors&, const HeadDimensionFactors&) = default;
};

/// Kernels bound by memory: t = start_up + bytes / (bandwidth · fraction).
struct BandwidthCurve {
  Parameter start_up_us;
  Parameter bandwidth_fraction;
  friend bool operator==(const BandwidthCurve&, const BandwidthCurve&) = default;
};

/// Collective over n GPUs of `bytes` (the full, gathered size). With x = φ·bytes, φ the bus factor
/// of nccl-tests (all-gather and reduce-scatter (n−1)/n, all-reduce 2(n−1)/n):
///   t = base + steps(n) · hop + x / (link · bandwidth_fraction) + ramp · x / (x + ramp_mbytes).
/// The ramp is the cost of filling the pipeline of a large message, which small ones don't pay;
/// with it the bus bandwidth x/t approaches its limit as slowly as measured.
struct CollectiveCurve {
  Parameter base_us;
  Parameter hop_us;
  Parameter bandwidth_fraction;  ///< may exceed 1 for all-reduce: switches add up (NVLink SHARP)
  Parameter ramp_us;
  Parameter ramp_mbytes;  ///< bus traffic at which half of the ramp is paid
  friend bool operator==(const CollectiveCurve&, const CollectiveCurve&) = default;
};

/// Message between two GPUs: arrives latency + bytes / (link · bandwidth_fraction) after it
/// started.
struct LinkCurve {
  Parameter latency_us;
  Parameter bandwidth_fraction;
  friend bool operator==(const LinkCurve&, const LinkCurve&) = default;
};

/// Everything that calibration can replace.
struct HardwareProfile {
  GemmCurve gemm;
  AttentionCurve attention_forward_full;
  AttentionCurve attention_forward_causal;
  AttentionCurve attention_backward_full;
  AttentionCurve attention_backward_causal;
  HeadDimensionFactors head_dimension;
  BandwidthCurve memory;
  CollectiveCurve all_reduce_nvlink;  ///< steps(n) = 2(n−1)
  CollectiveCurve all_gather_nvlink;  ///< and reduce-scatter; steps(n) = n−1
  CollectiveCurve collective_nic;  ///< between nodes; steps = ⌈log2 nodes⌉, all-reduce twice that
  LinkCurve p2p_nvlink;
  LinkCurve p2p_nic;
  LinkCurve host;  ///< device to pinned host memory and back
  friend bool operator==(const HardwareProfile&, const HardwareProfile&) = default;
};

/// Reads the object below "profile" of a GPU file, or a whole calibrated profile.
HardwareProfile read_profile(const JsonValue& value);
HardwareProfile load_profile(const std::filesystem::path& path);
nlohmann::json to_json(const HardwareProfile& profile);

/// All parameters in file order, for `describe` and for reports.
std::vector<NamedParameter> parameters(const HardwareProfile& profile);

}  // namespace dipsim
