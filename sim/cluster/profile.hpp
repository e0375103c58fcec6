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
#include <optional>
#include <string_view>
#include <vector>

namespace dipsim {

/// Matrix product C[m,n] = A[m,k] B[k,n] on tensor cores, the k of each output tile split s times:
///   T = s · ⌈m/tile_m⌉ · ⌈n/tile_n⌉ tiles on S multiprocessors, over all products of the kernel,
///   waves = w·T/S + (1−w)·⌈T/S⌉,
///   t_math = waves · 2·tile_m·tile_n·(k/s + k0·2/e) · S / (peak · peak_fraction), e bytes per
///   input, t_memory = (e·m·k + e·k·n + c·m·n) / (memory bandwidth of BandwidthCurve), c bytes per
///   output,
///              and 8·s more where s > 1 (partial sums in fp32),
///   t = start_up + (t_math^4 + t_memory^4)^(1/4), the least over tile shapes and s.
struct GemmCurve {
  Parameter start_up_us;
  Parameter peak_fraction;  ///< of the data-sheet peak, sustained by full waves
  Parameter prologue_k;     ///< k0: prologue and epilogue of a tile, in 16-bit columns of k
  Parameter smooth_waves;   ///< w in [0, 1]: 0 counts whole waves, 1 has no tail effect
  friend bool operator==(const GemmCurve&, const GemmCurve&) = default;
};

/// Fused attention in one direction, for all masks:
///   visited = pairs + (edge_pairs under a causal mask, + window_pairs with a window) · tokens,
///   t_math = row · tokens · heads / S + flops(visited) / (peak · peak_fraction · head factor),
///   t = start_up + (t_math^4 + t_memory^4)^(1/4), t_memory for queries, keys, values and results.
/// The head factor is 1 at head dimension 128, linear between those that have one, constant
/// outside.
struct AttentionCurve {
  Parameter start_up_us;
  Parameter row_ns;         ///< per token and head, times the number of multiprocessors
  Parameter edge_pairs;     ///< masked pairs per query token in tiles that the diagonal cuts
  Parameter window_pairs;   ///< the same for the far edge of a window
  Parameter peak_fraction;  ///< at head dimension 128
  Parameter at_64;          ///< head factors
  Parameter at_192;         ///< with 128 for the values (multi-head latent attention)
  Parameter at_256;
  friend bool operator==(const AttentionCurve&, const AttentionCurve&) = default;
};

/// Speed of other attention kernels relative to the curves of attention.
struct AttentionSpeeds {
  Parameter flash2_forward;
  Parameter flash2_backward;
  Parameter triton_forward;
  Parameter triton_backward;
  friend bool operator==(const AttentionSpeeds&, const AttentionSpeeds&) = default;
};

/// Kernels bound by memory: t = start_up + bytes / (bandwidth · fraction).
struct BandwidthCurve {
  Parameter start_up_us;
  Parameter bandwidth_fraction;
  friend bool operator==(const BandwidthCurve&, const BandwidthCurve&) = default;
};

/// One protocol of NCCL under one algorithm, ring or tree. A message has a start-up and a speed:
///   t = base + hops on NVLink · nvlink_hop + hops on the network · nic_hop + traffic / bandwidth,
/// hops and traffic as network_time.hpp counts them. LL sends flags with every word and starts
/// fast, LL128 with every line, Simple is fastest on long messages.
struct ProtocolCurve {
  Parameter base_us;
  Parameter nvlink_hop_us;
  Parameter nic_hop_us;
  Parameter nvlink_fraction;
  Parameter nic_fraction;  ///< of all cards that the group has on a node; 0: not used between nodes
  friend bool operator==(const ProtocolCurve&, const ProtocolCurve&) = default;
};

/// All-reduce in one node whose switches add up and copy (NVLink SHARP). With n GPUs:
///   t = base + (1 + 1/n) · bytes / (NVLink · nvlink_fraction) + ramp · x / (x + ramp_mbytes),
/// x the bus traffic: long messages go in larger pieces, which take longer to fill the pipeline.
struct NvlsCurve {
  Parameter base_us;
  Parameter nvlink_fraction;
  Parameter ramp_us;
  Parameter ramp_mbytes;  ///< bus traffic at which half of the ramp is paid
  friend bool operator==(const NvlsCurve&, const NvlsCurve&) = default;
};

/// All-reduce between nodes: switches add up in each node, trees over the cards join the nodes.
struct NvlsTreeCurve {
  Parameter base_us;
  Parameter nic_hop_us;
  Parameter two_nodes_nic_fraction;  ///< of the cards, where the group lies on two nodes
  Parameter nic_fraction;            ///< where it lies on more
  friend bool operator==(const NvlsTreeCurve&, const NvlsTreeCurve&) = default;
};

/// All-to-all as sends to every peer; between nodes the cards are as fast as in p2p_nic.
struct AllToAllCurve {
  Parameter base_us;
  Parameter nvlink_peer_us;  ///< per peer on the same node
  Parameter nic_peer_us;     ///< per peer on another node
  Parameter nvlink_fraction;
  friend bool operator==(const AllToAllCurve&, const AllToAllCurve&) = default;
};

/// Channels of NCCL that one message between nodes may use: `per_peer`, halved until all ranks of
/// its communicator together need no more than `total`, at least one.
struct ChannelRule {
  Parameter per_peer;
  Parameter total;
  Parameter gbytes_per_s;  ///< of one channel
  friend bool operator==(const ChannelRule&, const ChannelRule&) = default;
};

/// Message between two GPUs: arrives latency + bytes / (link · bandwidth_fraction) after it
/// started.
struct LinkCurve {
  Parameter latency_us;
  Parameter bandwidth_fraction;
  friend bool operator==(const LinkCurve&, const LinkCurve&) = default;
};

/// What compute pays for communication beside it: both want multiprocessors, memory and power.
struct OverlapCost {
  /// A pass takes (1 + this) times as long while a transfer or collective of its rank is under way.
  /// Copies to the host have engines of their own and cost nothing here.
  Parameter compute_slowdown;
  friend bool operator==(const OverlapCost&, const OverlapCost&) = default;
};

/// What the framework on the host needs to issue work.
struct IssueRate {
  Parameter kernel_us;  ///< per kernel, one by one
  Parameter pass_us;    ///< per pass of a framework that waits for each pass and its transfers
  friend bool operator==(const IssueRate&, const IssueRate&) = default;
};

/// Everything that calibration can replace.
struct HardwareProfile {
  GemmCurve gemm;                     ///< bf16, fp16, tf32
  std::optional<GemmCurve> gemm_fp8;  ///< fp8 and mxfp8; none: the GPU has no such tensor cores
  AttentionCurve attention_forward;
  AttentionCurve attention_backward;
  std::optional<AttentionCurve> attention_backward_deterministic;  ///< none: as attention_backward
  std::optional<AttentionCurve> attention_forward_fp8;
  std::optional<AttentionCurve> attention_backward_fp8;
  std::optional<AttentionCurve> attention_forward_mxfp8;
  std::optional<AttentionCurve> attention_backward_mxfp8;
  AttentionSpeeds attention_speeds;
  BandwidthCurve memory;
  IssueRate host_issue;
  ProtocolCurve ring_ll;
  ProtocolCurve ring_ll128;
  ProtocolCurve ring_simple;
  ProtocolCurve tree_ll;
  ProtocolCurve tree_ll128;
  ProtocolCurve tree_simple;
  std::optional<NvlsCurve> nvls;           ///< nothing: switches only pass on
  std::optional<NvlsTreeCurve> nvls_tree;  ///< only with nvls
  AllToAllCurve all_to_all;
  LinkCurve p2p_nvlink;
  LinkCurve p2p_nic;
  ChannelRule p2p_channels;
  LinkCurve host;  ///< device to pinned host memory and back
  OverlapCost overlap;
  friend bool operator==(const HardwareProfile&, const HardwareProfile&) = default;
};

/// Reads the object below "profile" of a GPU file, or a whole calibrated profile.
HardwareProfile read_profile(const JsonValue& value);
HardwareProfile load_profile(const std::filesystem::path& path);
nlohmann::json to_json(const HardwareProfile& profile);

/// All parameters in file order, for `describe` and for reports.
std::vector<NamedParameter> parameters(const HardwareProfile& profile);

}  // namespace dipsim
