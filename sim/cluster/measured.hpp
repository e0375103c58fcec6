// SPDX-License-Identifier: Apache-2.0
// Times that somebody measured on the very links of a cluster: they go before the model.
#pragma once

#include "sim/cluster/collective.hpp"
#include "sim/core/json.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dipsim {

struct MeasuredPoint {
  double bytes = 0.0;  ///< as nccl-tests counts them: the gathered tensor, or one message
  double us = 0.0;
  friend bool operator==(const MeasuredPoint&, const MeasuredPoint&) = default;
};

/// One kind of collective on one kind of group, by size.
struct MeasuredTable {
  std::optional<CollectiveKind> kind;  ///< nothing: send and receive between neighbours
  int members = 2;
  int nodes = 1;                      ///< that the members lie on
  std::vector<MeasuredPoint> points;  ///< by ascending size, at least one
  std::string source;
  friend bool operator==(const MeasuredTable&, const MeasuredTable&) = default;
};

/// "all-reduce", …, "send-receive".
std::string_view kind_name(const MeasuredTable& table);

/// Between two sizes the time is a power of the size (a line on double logarithmic paper). Beyond
/// either end it is the model's, scaled to meet the end point. `model`: seconds by bytes, positive.
double measured_seconds(const MeasuredTable& table, double bytes,
                        const std::function<double(double)>& model);

/// The table of a collective on exactly this many members and nodes; null where there is none.
const MeasuredTable* find_collective(const std::vector<MeasuredTable>& tables, CollectiveKind kind,
                                     const CollectiveGroup& group);

/// The table of messages inside a node, or between nodes: there the one with the most members that
/// do not exceed the communicator, else the one with the fewest.
const MeasuredTable* find_messages(const std::vector<MeasuredTable>& tables, bool same_node,
                                   int communicator);

/// The value below "measured" of a cluster: a list of
///   "FILE"                                              output of nccl-tests, text or JSON
///   {"file": "FILE", "collective": "all-reduce", "gpus": 16, "nodes": 2}   where FILE does not say
///   {"collective": …, "gpus": …, "nodes": …, "source": …, "points": [[bytes, us], …]}
/// Files are looked for beside the file that names them. Throws Input, with the place in this file
/// or in that one; two tables for one collective and group are an error.
std::vector<MeasuredTable> read_measured(const JsonValue& value);
/// With their points: reads back without any other file.
nlohmann::json to_json(const std::vector<MeasuredTable>& tables);

/// What a file of nccl-tests holds; what it does not tell is left open.
struct NcclTestsFile {
  bool names_collective = false;
  std::optional<CollectiveKind> kind;  ///< valid where names_collective; nothing: send and receive
  std::optional<int> members;
  std::optional<int> nodes;
  std::vector<MeasuredPoint> points;  ///< out-of-place times
};

/// The table that nccl-tests prints (the columns that its header names), or the JSON that it writes
/// with --output_file: a text that begins with "{". Throws Input, naming file, line and column
/// (JSON pointer), on lines that are neither comments nor rows, rows that are cut off, sizes that
/// do not grow, times that are not positive, and no row at all.
NcclTestsFile read_nccl_tests(std::string_view text, const std::string& file);

}  // namespace dipsim
