// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/plan_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

namespace dipsim::plan_tables {

namespace {

using Number = std::int64_t;

template <class Tag>
Id<Tag> to_id(Number number) {
  return Id<Tag>(static_cast<std::int32_t>(number));
}

/// A struct of whole numbers as a row: its column names, the largest value of each column, and both
/// conversions.
template <class T>
struct RowFormat;

template <>
struct RowFormat<Task> {
  static constexpr std::array<std::string_view, 13> kColumns = {"op",
                                                                "lane",
                                                                "rank",
                                                                "peer",
                                                                "chunk",
                                                                "work",
                                                                "pair",
                                                                "group",
                                                                "fixed_ns",
                                                                "latency_ns",
                                                                "fillable_idle_ns",
                                                                "bytes",
                                                                "transient_bytes"};

  static std::array<Number, 13> to_row(const Task& t) {
    return {static_cast<Number>(t.op),
            static_cast<Number>(t.lane),
            t.rank.value,
            t.peer.value,
            t.chunk.value,
            t.work.value,
            t.pair.value,
            t.group.value,
            t.fixed.count(),
            t.latency.count(),
            t.fillable_idle.count(),
            t.bytes.count,
            t.transient.count};
  }

  static Task from_row(std::span<const Number> r) {
    return {.op = static_cast<Op>(r[0]),
            .lane = static_cast<Lane>(r[1]),
            .rank = to_id<RankTag>(r[2]),
            .peer = to_id<RankTag>(r[3]),
            .chunk = to_id<ChunkTag>(r[4]),
            .work = to_id<WorkTag>(r[5]),
            .pair = to_id<PairTag>(r[6]),
            .group = to_id<GroupTag>(r[7]),
            .fixed = Duration(r[8]),
            .latency = Duration(r[9]),
            .fillable_idle = Duration(r[10]),
            .bytes = Bytes{r[11]},
            .transient = Bytes{r[12]}};
  }

  /// Largest value of each small column; the others are ids, times or sizes.
  static constexpr Number limit(std::size_t column) {
    return column == 0   ? static_cast<Number>(kOpCount) - 1
           : column == 1 ? static_cast<Number>(kLaneCount) - 1
           : column < 8  ? std::numeric_limits<std::int32_t>::max()
                         : std::numeric_limits<Number>::max();
  }
};

template <>
struct RowFormat<Pair> {
  static constexpr std::array<std::string_view, 8> kColumns = {
      "f", "i", "w", "b", "copy_out", "copy_in", "first_strategy", "strategy_count"};

  static std::array<Number, 8> to_row(const Pair& p) {
    return {p.f.value,
            p.i.value,
            p.w.value,
            p.b.value,
            p.copy_out.value,
            p.copy_in.value,
            p.first_strategy.value,
            p.strategy_count};
  }

  static Pair from_row(std::span<const Number> r) {
    return {.f = to_id<TaskTag>(r[0]),
            .i = to_id<TaskTag>(r[1]),
            .w = to_id<TaskTag>(r[2]),
            .b = to_id<TaskTag>(r[3]),
            .copy_out = to_id<TaskTag>(r[4]),
            .copy_in = to_id<TaskTag>(r[5]),
            .first_strategy = to_id<StrategyTag>(r[6]),
            .strategy_count = static_cast<std::int32_t>(r[7])};
  }

  static constexpr Number limit(std::size_t) { return std::numeric_limits<std::int32_t>::max(); }
};

template <>
struct RowFormat<Strategy> {
  static constexpr std::array<std::string_view, 10> kColumns = {
      "mode",    "f_ns",         "i_ns",         "w_ns",          "b_ns",
      "copy_ns", "f_to_i_bytes", "i_to_w_bytes", "rebuilt_bytes", "offload_bytes"};

  static std::array<Number, 10> to_row(const Strategy& s) {
    return {static_cast<Number>(s.mode),
            s.f.count(),
            s.i.count(),
            s.w.count(),
            s.b.count(),
            s.copy.count(),
            s.f_to_i.count,
            s.i_to_w.count,
            s.rebuilt.count,
            s.offload.count};
  }

  static Strategy from_row(std::span<const Number> r) {
    return {.mode = static_cast<RecomputeMode>(r[0]),
            .f = Duration(r[1]),
            .i = Duration(r[2]),
            .w = Duration(r[3]),
            .b = Duration(r[4]),
            .copy = Duration(r[5]),
            .f_to_i = Bytes{r[6]},
            .i_to_w = Bytes{r[7]},
            .rebuilt = Bytes{r[8]},
            .offload = Bytes{r[9]}};
  }

  static constexpr Number limit(std::size_t column) {
    return column == 0 ? static_cast<Number>(RecomputeMode::Mixed)
                       : std::numeric_limits<Number>::max();
  }
};

template <>
struct RowFormat<Edge> {
  static constexpr std::array<std::string_view, 2> kColumns = {"from", "to"};

  static std::array<Number, 2> to_row(const Edge& e) { return {e.from.value, e.to.value}; }

  static Edge from_row(std::span<const Number> r) {
    return {to_id<TaskTag>(r[0]), to_id<TaskTag>(r[1])};
  }

  static constexpr Number limit(std::size_t) { return std::numeric_limits<std::int32_t>::max(); }
};

template <>
struct RowFormat<Overlap> {
  static constexpr std::array<std::string_view, 3> kColumns = {"f", "b", "together_ns"};

  static std::array<Number, 3> to_row(const Overlap& o) {
    return {o.f.value, o.b.value, o.together.count()};
  }

  static Overlap from_row(std::span<const Number> r) {
    return {to_id<TaskTag>(r[0]), to_id<TaskTag>(r[1]), Duration(r[2])};
  }

  static constexpr Number limit(std::size_t column) {
    return column < 2 ? std::numeric_limits<std::int32_t>::max()
                      : std::numeric_limits<Number>::max();
  }
};

}  // namespace

template <class T>
std::string write(std::span<const T> table) {
  using Format = RowFormat<T>;
  fmt::memory_buffer out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "{{\"columns\": [\"{}\"], \"rows\": [", fmt::join(Format::kColumns, "\", \""));
  for (std::size_t i = 0; i < table.size(); ++i) {
    fmt::format_to(to, "{}\n[{}]", i == 0 ? "" : ",", fmt::join(Format::to_row(table[i]), ","));
  }
  fmt::format_to(to, "]}}");
  return fmt::to_string(out);
}

namespace {

/// Numbers are checked in place and the place is only spelt out for an error: a plan has 10^6 of
/// them.
template <class T>
T read_row(const JsonValue& rows, std::size_t row) {
  using Format = RowFormat<T>;
  const nlohmann::json& cells = rows.raw()[row];
  std::array<Number, Format::kColumns.size()> numbers{};
  const auto refuse = [&](const std::string& message) {
    rows.child(cells, fmt::format("/{}", row)).fail(message);
  };
  if (!cells.is_array() || cells.size() != numbers.size()) {
    refuse(fmt::format("a row has {} whole numbers: {}", numbers.size(),
                       fmt::join(Format::kColumns, ", ")));
  }
  for (std::size_t c = 0; c < numbers.size(); ++c) {
    const bool whole = cells[c].is_number_integer();
    const Number limit = Format::limit(c);
    const auto number = whole ? cells[c].get<Number>() : Number{-2};
    const bool wrapped = cells[c].is_number_unsigned() &&
                         cells[c].get<std::uint64_t>() > static_cast<std::uint64_t>(limit);
    if (number < -1 || number > limit || wrapped) {
      refuse(fmt::format("{} must be a whole number from -1 to {}", Format::kColumns[c], limit));
    }
    numbers[c] = number;
  }
  return Format::from_row(numbers);
}

}  // namespace

template <class T>
std::vector<T> read(const JsonValue& value) {
  using Format = RowFormat<T>;
  JsonObject table = value.object();
  const JsonValue columns = table.at("columns");
  const nlohmann::json expected(Format::kColumns);
  if (columns.raw() != expected) {
    columns.fail(fmt::format("the columns must be {}", expected.dump()));
  }
  const JsonValue rows = table.at("rows");
  table.finish();
  if (!rows.is_array()) {
    rows.fail("not a list of rows");
  }
  std::vector<T> out;
  out.reserve(rows.raw().size());
  for (std::size_t row = 0; row < rows.raw().size(); ++row) {
    out.push_back(read_row<T>(rows, row));
  }
  return out;
}

template std::string write(std::span<const Task>);
template std::string write(std::span<const Pair>);
template std::string write(std::span<const Strategy>);
template std::string write(std::span<const Edge>);
template std::string write(std::span<const Overlap>);
template std::vector<Task> read(const JsonValue&);
template std::vector<Pair> read(const JsonValue&);
template std::vector<Strategy> read(const JsonValue&);
template std::vector<Edge> read(const JsonValue&);
template std::vector<Overlap> read(const JsonValue&);

}  // namespace dipsim::plan_tables
