// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/measured.hpp"

#include "sim/core/files.hpp"
#include "sim/core/json_behind.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

namespace dipsim {

namespace {

constexpr std::size_t kMessages = kCollectiveKinds;  ///< row of "send-receive"
constexpr std::array<std::string_view, kCollectiveKinds + 1> kKindNames = {
    "all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all", "send-receive"};
constexpr std::int64_t kMaxMembers = 10'000'000;
constexpr double kMicro = 1e-6;
constexpr double kMaxBytes = 1e15;
constexpr double kLeastMicroseconds = 1e-3;
constexpr double kMaxMicroseconds = 1e12;

std::optional<CollectiveKind> read_kind(const JsonValue& value) {
  const std::size_t row = value.one_of(kKindNames, "collective");
  return row == kMessages ? std::nullopt : std::optional(static_cast<CollectiveKind>(row));
}

std::vector<MeasuredPoint> read_points(const JsonValue& value) {
  std::vector<MeasuredPoint> points;
  for (const JsonValue& item : value.items()) {
    const std::vector<JsonValue> pair = item.items();
    if (pair.size() != 2) {
      item.fail("is no pair of bytes and microseconds");
    }
    points.push_back(
        {pair[0].number(1.0, kMaxBytes), pair[1].number(kLeastMicroseconds, kMaxMicroseconds)});
    if (points.size() > 1 && points.back().bytes <= points[points.size() - 2].bytes) {
      pair[0].fail("sizes must grow");
    }
  }
  if (points.empty()) {
    value.fail("holds no point");
  }
  return points;
}

/// A key of the object, else what the file says; neither is an error at the object.
int count_or(JsonObject& object, std::string_view key, std::optional<int> told, std::int64_t low,
             const std::string& file) {
  if (const auto value = object.find(key)) {
    const auto count = static_cast<int>(value->integer(low, kMaxMembers));
    if (told && *told != count) {
      value->fail(fmt::format("is {} where {} says {}", count, file, *told));
    }
    return count;
  }
  if (!told) {
    object.self().fail(fmt::format("{} does not say: give \"{}\"", file, key));
  }
  return *told;
}

MeasuredTable from_file(const JsonValue& place, JsonObject& object, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(place.file()).parent_path() / name;
  NcclTestsFile file =
      read_behind(place, [&] { return read_nccl_tests(read_file(path), path.string()); });
  MeasuredTable table;
  if (const auto collective = object.find("collective")) {
    table.kind = read_kind(*collective);
    if (file.names_collective && file.kind != table.kind) {
      collective->fail(fmt::format("is not what {} measured", path.string()));
    }
  } else if (file.names_collective) {
    table.kind = file.kind;
  } else {
    object.self().fail(
        fmt::format("{} does not say what it measured: give \"collective\"", path.string()));
  }
  table.members = count_or(object, "gpus", file.members, 2, path.string());
  table.nodes = count_or(object, "nodes", file.nodes, 1, path.string());
  table.points = std::move(file.points);
  table.source = name;
  return table;
}

MeasuredTable read_table(const JsonValue& value) {
  if (!value.is_object()) {
    const nlohmann::json nothing = nlohmann::json::object();
    JsonObject empty = value.child(nothing, "").object();
    return from_file(value, empty, value.text());
  }
  JsonObject object = value.object();
  MeasuredTable table;
  if (const auto file = object.find("file")) {
    table = from_file(value, object, file->text());
  } else {
    table.kind = read_kind(object.at("collective"));
    table.members = static_cast<int>(object.at("gpus").integer(2, kMaxMembers));
    table.nodes = static_cast<int>(object.at("nodes").integer(1, kMaxMembers));
    table.source = object.at("source").text();
    table.points = read_points(object.at("points"));
  }
  object.finish();
  if (table.nodes > table.members) {
    value.fail(fmt::format("{} GPUs can't lie on {} nodes", table.members, table.nodes));
  }
  return table;
}

bool same_group(const MeasuredTable& a, const MeasuredTable& b) {
  return a.kind == b.kind && a.members == b.members && a.nodes == b.nodes;
}

}  // namespace

std::string_view kind_name(const MeasuredTable& table) {
  return kKindNames[table.kind ? static_cast<std::size_t>(*table.kind) : kMessages];
}

double measured_seconds(const MeasuredTable& table, double bytes,
                        const std::function<double(double)>& model) {
  const MeasuredPoint& first = table.points.front();
  const MeasuredPoint& last = table.points.back();
  if (bytes <= first.bytes) {
    return model(bytes) * first.us * kMicro / model(first.bytes);
  }
  if (bytes >= last.bytes) {
    return model(bytes) * last.us * kMicro / model(last.bytes);
  }
  const auto above = std::ranges::upper_bound(table.points, bytes, {}, &MeasuredPoint::bytes);
  const MeasuredPoint& low = *(above - 1);
  const double share = std::log(bytes / low.bytes) / std::log(above->bytes / low.bytes);
  return low.us * kMicro * std::pow(above->us / low.us, share);
}

const MeasuredTable* find_collective(const std::vector<MeasuredTable>& tables, CollectiveKind kind,
                                     const CollectiveGroup& group) {
  const auto found = std::ranges::find_if(tables, [&](const MeasuredTable& table) {
    return table.kind == kind && table.members == group.members && table.nodes == group.nodes;
  });
  return found == tables.end() ? nullptr : &*found;
}

const MeasuredTable* find_messages(const std::vector<MeasuredTable>& tables, bool same_node,
                                   int communicator) {
  const MeasuredTable* best = nullptr;
  const auto fits = [&](const MeasuredTable& table) { return table.members <= communicator; };
  for (const MeasuredTable& table : tables) {
    if (table.kind || (table.nodes == 1) != same_node) {
      continue;
    }
    const bool better = best == nullptr || (fits(table) != fits(*best) ? fits(table)
                                            : fits(table) ? table.members > best->members
                                                          : table.members < best->members);
    best = better ? &table : best;
  }
  return best;
}

std::vector<MeasuredTable> read_measured(const JsonValue& value) {
  std::vector<MeasuredTable> tables;
  for (const JsonValue& item : value.items()) {
    MeasuredTable table = read_table(item);
    for (const MeasuredTable& other : tables) {
      if (same_group(table, other)) {
        item.fail(fmt::format("a second table of {} on {} GPUs of {} nodes", kind_name(table),
                              table.members, table.nodes));
      }
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

nlohmann::json to_json(const std::vector<MeasuredTable>& tables) {
  nlohmann::json out = nlohmann::json::array();
  for (const MeasuredTable& table : tables) {
    nlohmann::json points = nlohmann::json::array();
    for (const MeasuredPoint& point : table.points) {
      points.push_back({point.bytes, point.us});
    }
    out.push_back({{"collective", kind_name(table)},
                   {"gpus", table.members},
                   {"nodes", table.nodes},
                   {"source", table.source},
                   {"points", std::move(points)}});
  }
  return out;
}

}  // namespace dipsim
