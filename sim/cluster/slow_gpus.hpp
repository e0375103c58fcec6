// SPDX-License-Identifier: Apache-2.0
// GPUs that compute more slowly than the others: stragglers of a cluster.
#pragma once

#include "sim/core/ids.hpp"
#include "sim/core/json.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

/// Times of all passes on this GPU are divided by `speed`, in (0, 1].
struct SlowGpu {
  GpuId gpu;
  double speed = 1.0;
  friend bool operator==(const SlowGpu&, const SlowGpu&) = default;
};

/// What somebody said about the speed of one GPU, or of all GPUs of a node.
struct SpeedEntry {
  bool whole_node = false;
  std::int64_t index = 0;  ///< of the GPU or the node, from 0
  double speed = 1.0;
  std::string where;  ///< place for errors
  friend bool operator==(const SpeedEntry&, const SpeedEntry&) = default;
};

inline constexpr double kLeastSpeed = 0.001;

/// [{"gpu": 17, "speed": 0.8}, {"node": 3, "speed": 0.9}]. Throws Input on speeds outside of
/// [kLeastSpeed, 1]; counts are checked by slow_gpus().
std::vector<SpeedEntry> read_speed_entries(const JsonValue& value);

/// "17=0.8" or "node3=0.9". Throws Input at `where` on anything else.
SpeedEntry parse_speed_entry(std::string_view text, const std::string& where);

/// "17=0.8,node3=0.9"; "none" where there are none.
std::string text_of(const std::vector<SpeedEntry>& entries);

/// The GPUs that these entries name, in ascending order, those of speed 1 among them. Throws Input
/// at the entry that names a GPU or node which the cluster does not have (with the nearest one), or
/// a GPU for the second time.
std::vector<SlowGpu> slow_gpus(const std::vector<SpeedEntry>& entries, int nodes,
                               int gpus_per_node);

/// `own` with the speeds of `replaced` in place of its own, without GPUs of speed 1.
std::vector<SlowGpu> with_speeds(std::vector<SlowGpu> own, const std::vector<SlowGpu>& replaced);

nlohmann::json to_json(const std::vector<SlowGpu>& slow);

}  // namespace dipsim
