// SPDX-License-Identifier: Apache-2.0
// The table of published NCCL measurements, row by row.
#pragma once

#include "sim/cluster/collective.hpp"
#include "validate/csv_table.hpp"
#include "validate/validation_set.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dipsim {

/// Which measurement a row belongs to: decides whether the fit may see it.
enum class NcclOrigin : std::uint8_t {
  EchoA100,         ///< nccl-tests logs of 2 to 128 A100 in nodes of 8
  AzureH100,        ///< 8 H100, NVLS
  AwsH100,          ///< 16 H100 over EFA
  TwoByFourH100,    ///< 2 nodes of 4 H100
  OciH100,          ///< 16 H100 of OCI
  SendReceiveB200,  ///< neighbours on 2 to 32 nodes: the channel rule was read off it
  Other
};

/// One measured message size.
struct NcclRow {
  int line = 0;
  NcclOrigin origin = NcclOrigin::Other;
  std::string gpu;      ///< as in the table
  std::string cluster;  ///< shipped cluster whose links it has
  std::string interconnect;
  std::string algorithm;               ///< that was forced; "": NCCL's choice
  std::optional<CollectiveKind> kind;  ///< nothing: send and receive between ring neighbours
  CollectiveGroup group;
  double bytes = 0.0;
  double seconds = 0.0;
};

struct NcclRows {
  std::vector<NcclRow> rows;
  std::vector<UnusableRow> unusable;  ///< with what is missing or does not fit
};

/// Times are out-of-place; where a row has bus bandwidth only, the time is derived from it. Throws
/// Input, naming file, line and column, on numbers out of range.
NcclRows read_nccl_rows(const CsvTable& table);

}  // namespace dipsim
