// SPDX-License-Identifier: Apache-2.0
#include "validate/nccl_rows.hpp"

#include "sim/cluster/network_time.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace dipsim {

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// GPUs of the table that a shipped cluster has.
struct KnownGpu {
  std::string_view name;
  std::string_view cluster;
};

constexpr std::array kKnownGpus = {
    KnownGpu{"A100-SXM4-40GB", "a100-64"},
    KnownGpu{"A100-SXM4-80GB", "a100-64"},
    KnownGpu{"A100 (8-GPU node)", "a100-64"},
    KnownGpu{"A100-40GB", "a100-64"},
    KnownGpu{"A100", "a100-64"},
    KnownGpu{"H100-SXM5-80GB", "h100-64"},
    KnownGpu{"H100", "h100-64"},
    KnownGpu{"H200-SXM-141GB", "h200-64"},
    KnownGpu{"H200", "h200-64"},
    KnownGpu{"H800", "h800-64"},
    KnownGpu{"H20", "h20-16"},
    KnownGpu{"B200", "b200-64"},
};

struct KnownCollective {
  std::string_view name;
  std::optional<CollectiveKind> kind;
};

constexpr std::array kCollectives = {
    KnownCollective{"all_reduce", CollectiveKind::AllReduce},
    KnownCollective{"alltoall", CollectiveKind::AllToAll},
    KnownCollective{"sendrecv", std::nullopt},
};

NcclOrigin origin_of(const CsvRow& row) {
  const std::string_view gpu = row.text("gpu");
  const std::string_view source = row.text("source");
  const std::string_view interconnect = row.text("interconnect");
  if (gpu == "B200" && row.text("collective") == "sendrecv") {
    return NcclOrigin::SendReceiveB200;
  }
  if (row.text("collective") != "all_reduce") {
    return NcclOrigin::Other;
  }
  if (gpu == "A100-SXM4-40GB" && contains(source, "Echo")) {
    return NcclOrigin::EchoA100;
  }
  if (gpu != "H100-SXM5-80GB") {
    return NcclOrigin::Other;
  }
  if (contains(source, "Azure")) {
    return NcclOrigin::AzureH100;
  }
  if (contains(source, "all_reduce_perf log")) {
    if (contains(interconnect, "AWS p5")) {
      return NcclOrigin::AwsH100;
    }
    if (contains(interconnect, "2 nodes x 4")) {
      return NcclOrigin::TwoByFourH100;
    }
    if (contains(interconnect, "OCI")) {
      return NcclOrigin::OciH100;
    }
  }
  return NcclOrigin::Other;
}

/// The algorithm that a row was forced to; A100 has no NVLS, whatever its source prints.
std::string forced_algorithm(const CsvRow& row) {
  const std::string_view algorithm = row.text("algo");
  const bool ampere = row.text("gpu").starts_with("A100");
  for (const std::string_view name : {"NVLS", "ring", "tree"}) {
    if (algorithm == name && !ampere) {
      return std::string(name);
    }
  }
  return "";
}

/// Reads one row, or says why it can't be used.
class RowReader {
 public:
  explicit RowReader(const CsvRow& row) : row_(row) {}

  std::optional<NcclRow> read() {
    out_.line = row_.line();
    out_.origin = origin_of(row_);
    out_.interconnect = row_.text("interconnect");
    out_.algorithm = forced_algorithm(row_);
    const bool usable = read_gpu() && read_kind() && read_group() && read_size() && read_time();
    return usable ? std::optional(out_) : std::nullopt;
  }

  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool read_gpu() {
    out_.gpu = row_.text("gpu");
    for (const KnownGpu& known : kKnownGpus) {
      if (known.name == out_.gpu) {
        out_.cluster = known.cluster;
      }
    }
    if (out_.cluster.empty()) {
      return refuse("no shipped GPU: " + out_.gpu);
    }
    if (contains(out_.interconnect, "4 NICs per rank") || contains(out_.interconnect, "SHARP")) {
      return refuse("no shipped cluster has these links: " + out_.interconnect);
    }
    return true;
  }

  bool read_kind() {
    for (const KnownCollective& known : kCollectives) {
      if (known.name == row_.text("collective")) {
        out_.kind = known.kind;
        return true;
      }
    }
    return refuse("no such collective: " + std::string(row_.text("collective")));
  }

  bool read_group() {
    const auto gpus = row_.number_if("gpus", 2.0, 1e6);
    const auto nodes = row_.number_if("nodes", 1.0, 1e6);
    if (!gpus || !nodes) {
      return refuse("the number of GPUs or nodes is no number");
    }
    out_.group = {.members = static_cast<int>(*gpus), .nodes = static_cast<int>(*nodes)};
    return true;
  }

  bool read_size() {
    const auto bytes = row_.number_if("size_bytes", 1.0, 1e15);
    if (!bytes) {
      return refuse("the message size is no number");
    }
    out_.bytes = *bytes;
    return true;
  }

  bool read_time() {
    if (const auto us = row_.number_if("time_us_outofplace", 0.0, 1e12); us && *us > 0.0) {
      out_.seconds = *us * 1e-6;
      return true;
    }
    for (const std::string_view column : {"busbw_gbps", "busbw_inplace_gbps"}) {
      const auto speed = row_.number_if(column, 0.0, 1e6);  // GB/s, whatever the name says
      if (speed && *speed > 0.0) {
        const double factor = out_.kind ? bus_factor(*out_.kind, out_.group.members) : 1.0;
        out_.seconds = factor * out_.bytes / (*speed * 1e9);
        return true;
      }
    }
    return refuse("neither time nor bus bandwidth");
  }

  const CsvRow& row_;
  NcclRow out_;
  std::string reason_;
};

}  // namespace

NcclRows read_nccl_rows(const CsvTable& table) {
  NcclRows out;
  for (const CsvRow& row : table.rows()) {
    RowReader reader(row);
    if (std::optional<NcclRow> read = reader.read()) {
      out.rows.push_back(std::move(*read));
    } else {
      out.unusable.push_back({row.line(), reader.reason()});
    }
  }
  return out;
}

}  // namespace dipsim
