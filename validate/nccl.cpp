// SPDX-License-Identifier: Apache-2.0
// NCCL collectives by message size: the rows that the network curves were fitted to, those held
// out, and those of other machines.
#include "sim/cluster/network_time.hpp"
#include "validate/nccl_fit.hpp"
#include "validate/nccl_rows.hpp"
#include "validate/sets.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

namespace dipsim {

namespace {

constexpr double kLeastJudged = 1024.0 * 1024.0;  // bytes; training sends more
constexpr double kBarPercent = 12.0;

bool is_held_out(const NcclRow& row) {
  return row.origin == NcclOrigin::TwoByFourH100 || row.origin == NcclOrigin::OciH100 ||
         (row.origin == NcclOrigin::EchoA100 && !is_fitted(row));
}

std::string note_on(const NcclRow& row) {
  if (row.gpu == "A100-SXM4-40GB" || row.gpu == "A100-40GB") {
    return "predicted as A100 80 GB: the links are the same";
  }
  return row.interconnect.find("not stated") != std::string::npos
             ? "rate of the cards not stated: " + row.cluster + "'s assumed"
             : "";
}

/// Shipped clusters, each read once.
class Clusters {
 public:
  const Cluster& of(const std::string& name) {
    const auto found = known_.find(name);
    return found != known_.end() ? found->second
                                 : known_.emplace(name, load_cluster(name)).first->second;
  }

 private:
  std::map<std::string, Cluster> known_;
};

ValidationRow predicted_row(const Cluster& cluster, const NcclRow& row) {
  const double factor = row.kind ? bus_factor(*row.kind, row.group.members) : 1.0;
  return {.label = fmt::format("{} of {} bytes, {} {} on {} node{}",
                               row.kind ? name_of(*row.kind) : "send-receive",
                               static_cast<long long>(row.bytes), row.group.members, row.gpu,
                               row.group.nodes, row.group.nodes == 1 ? "" : "s"),
          .line = row.line,
          .predicted = predicted_seconds(cluster, row) * 1e6,
          .measured = row.seconds * 1e6,
          .work = factor * row.bytes,
          .note = note_on(row)};
}

ValidationSet empty_set(std::string name, std::string title, const CsvTable& table) {
  ValidationSet set;
  set.name = std::move(name);
  set.title = std::move(title);
  set.quantity = "collective time";
  set.unit = "us";
  set.table = table.file();
  set.source = "nccl-tests logs and tables; each row of the file names its own";
  return set;
}

}  // namespace

std::vector<ValidationSet> nccl(const CsvTable& table) {
  ValidationSet held_out =
      empty_set("nccl_held_out",
                "NCCL from 1 MiB on: A100 on 16 nodes, H100 2 x 4 and OCI, not fitted", table);
  held_out.bar_percent = kBarPercent;
  held_out.notes = {"fitted to: A100 on 1 to 8 nodes, 8 H100 (NVLS), 16 H100 (AWS)"};
  ValidationSet small = empty_set("nccl_held_out_small", "the same machines below 1 MiB", table);
  small.notes = {
      "latency: NCCL's constants, and hops over EFA for H100, while 2 x 4 H100 ran on InfiniBand",
      "the first size of every A100 log holds the warm-up"};
  ValidationSet other =
      empty_set("nccl_other", "NCCL from 1 MiB on: other machines with these GPUs", table);
  other.notes = {"H200 has the curves of H100; 16 H100 of DGX class: a noisy run"};

  Clusters clusters;
  NcclRows rows = read_nccl_rows(table);
  for (const NcclRow& row : rows.rows) {
    const Cluster& cluster = clusters.of(row.cluster);
    if (!is_modelled(cluster, row)) {
      other.unusable.push_back(
          {row.line, "NCCL would not choose what was forced: " + row.algorithm});
      continue;
    }
    ValidationRow predicted = predicted_row(cluster, row);
    const bool judged = row.bytes >= kLeastJudged;
    if (is_fitted(row)) {
      held_out.fitted.push_back(std::move(predicted));
    } else if (is_held_out(row)) {
      (judged ? held_out : small).rows.push_back(std::move(predicted));
    } else if (judged) {
      other.rows.push_back(std::move(predicted));
    } else {
      other.unusable.push_back({row.line, "below 1 MiB"});
    }
  }
  other.unusable.insert(other.unusable.end(), rows.unusable.begin(), rows.unusable.end());
  return {std::move(held_out), std::move(small), std::move(other)};
}

}  // namespace dipsim
