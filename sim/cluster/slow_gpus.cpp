// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/slow_gpus.hpp"

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

namespace dipsim {

namespace {

constexpr std::string_view kNodePrefix = "node";

/// Whether all of `text` is a number.
template <class Number>
bool read(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, number);
  return code == std::errc{} && at == end && !text.empty();
}

std::string name_of(const SpeedEntry& entry) {
  return fmt::format("{} {}", entry.whole_node ? "node" : "GPU", entry.index);
}

void require_exists(const SpeedEntry& entry, std::int64_t count) {
  if (entry.index >= count) {
    fail_input(entry.where,
               fmt::format("{} does not exist: the cluster has {} {}, numbered from 0; nearest "
                           "legal: {}",
                           name_of(entry), count, entry.whole_node ? "nodes" : "GPUs", count - 1));
  }
}

}  // namespace

std::vector<SpeedEntry> read_speed_entries(const JsonValue& value) {
  std::vector<SpeedEntry> entries;
  for (const JsonValue& item : value.items()) {
    JsonObject object = item.object();
    SpeedEntry entry{.where = item.where()};
    const auto gpu = object.find("gpu");
    const auto node = object.find("node");
    if (gpu.has_value() == node.has_value()) {
      item.fail("needs either \"gpu\" or \"node\": the number, from 0, of what is slow");
    }
    entry.whole_node = node.has_value();
    entry.index = (gpu ? *gpu : *node).integer(0, std::numeric_limits<std::int32_t>::max());
    entry.where = (gpu ? *gpu : *node).where();
    entry.speed = object.at("speed").number(kLeastSpeed, 1.0);
    object.finish();
    entries.push_back(std::move(entry));
  }
  return entries;
}

SpeedEntry parse_speed_entry(std::string_view text, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    fail_input(where, fmt::format("\"{}\" {}; expected GPU=SPEED or nodeNODE=SPEED, numbered from "
                                  "0, as in 17=0.8 or node2=0.9",
                                  shortened(text), why));
  };
  SpeedEntry entry{.where = where};
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    refuse("has no \"=\"");
  }
  std::string_view index = text.substr(0, equals);
  entry.whole_node = index.starts_with(kNodePrefix);
  index.remove_prefix(entry.whole_node ? kNodePrefix.size() : 0);
  std::int32_t number = 0;
  if (!read(index, number) || number < 0) {
    refuse("names no GPU and no node");
  }
  entry.index = number;
  // Also refuses NaN.
  if (!read(text.substr(equals + 1), entry.speed) ||
      !(entry.speed >= kLeastSpeed && entry.speed <= 1.0)) {
    refuse(fmt::format("has no speed from {:g} to 1 behind \"=\"", kLeastSpeed));
  }
  return entry;
}

std::string text_of(const std::vector<SpeedEntry>& entries) {
  std::string text;
  for (const SpeedEntry& entry : entries) {
    text += fmt::format("{}{}{}={}", text.empty() ? "" : ",", entry.whole_node ? kNodePrefix : "",
                        entry.index, shortest(entry.speed));
  }
  return text.empty() ? "none" : text;
}

std::vector<SlowGpu> slow_gpus(const std::vector<SpeedEntry>& entries, int nodes,
                               int gpus_per_node) {
  std::map<std::int64_t, double> speeds;
  for (const SpeedEntry& entry : entries) {
    require_exists(entry, entry.whole_node ? nodes : std::int64_t{nodes} * gpus_per_node);
    const std::int64_t count = entry.whole_node ? gpus_per_node : 1;
    for (std::int64_t gpu = entry.index * count; gpu < (entry.index + 1) * count; ++gpu) {
      const auto [known, fresh] = speeds.try_emplace(gpu, entry.speed);
      if (!fresh) {
        fail_input(entry.where,
                   fmt::format("GPU {} is named twice, at speed {} and at {}; a GPU has one speed",
                               gpu, shortest(known->second), shortest(entry.speed)));
      }
    }
  }
  std::vector<SlowGpu> slow;
  for (const auto& [gpu, speed] : speeds) {
    slow.push_back({.gpu = GpuId(static_cast<std::int32_t>(gpu)), .speed = speed});
  }
  return slow;
}

std::vector<SlowGpu> with_speeds(std::vector<SlowGpu> own, const std::vector<SlowGpu>& replaced) {
  std::erase_if(own, [&](const SlowGpu& slow) {
    return std::ranges::find(replaced, slow.gpu, &SlowGpu::gpu) != replaced.end();
  });
  own.insert(own.end(), replaced.begin(), replaced.end());
  std::erase_if(own, [](const SlowGpu& slow) { return slow.speed == 1.0; });
  std::ranges::sort(own, {}, &SlowGpu::gpu);
  return own;
}

nlohmann::json to_json(const std::vector<SlowGpu>& slow) {
  nlohmann::json out = nlohmann::json::array();
  for (const SlowGpu& each : slow) {
    out.push_back({{"gpu", each.gpu.value}, {"speed", each.speed}});
  }
  return out;
}

}  // namespace dipsim
