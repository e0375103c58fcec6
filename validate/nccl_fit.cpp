// SPDX-License-Identifier: Apache-2.0
#include "validate/nccl_fit.hpp"

#include "hw/fit/curve_fit.hpp"
#include "sim/cluster/network_time.hpp"
#include "sim/core/error.hpp"
#include "validate/refit.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

/// Below it the two digits of the table's bus bandwidth are too coarse.
constexpr double kNvlsLeast = 1024.0 * 1024.0;
constexpr int kMaxFittedA100 = 64;  // the 128 GPUs of the same logs are held out
constexpr std::string_view kA100Source =
    "github:NetX-lab/Echo@15f0d12 nccl-test-log (A100, 2 to 64 GPUs)";
constexpr std::string_view kNvlsSource =
    "github:Azure/AI-benchmarking-guide@8fd0c6e Azure_Results (H100, 8 GPUs, NVLS, bus bandwidth "
    "by size)";
constexpr std::string_view kAwsSource = "all_reduce_perf log, 16 H100 on AWS p5 (EFA)";

/// A parameter that a fit may change: where it starts, and its upper end.
struct Free {
  Parameter* parameter;
  FitRange range;
};

/// Logs of nccl-tests repeat within a few percent, with single sizes far off.
constexpr double kHuber = 0.03;
constexpr double kMostOfALink = 0.999;
constexpr double kLl128Payload = 0.9375;  // 120 of 128 bytes carry data

FitRange micros(double start) { return {.start = start, .upper = 1e5}; }

FitRange fraction(double start, double upper = kMostOfALink) {
  return {.start = start, .upper = upper};
}

/// Fits `free`, which point into `cluster`, to the rows.
void fit(const Cluster& cluster, std::span<const Free> free, std::span<const NcclRow> rows,
         std::string_view source) {
  std::vector<FitRange> ranges;
  for (const Free& one : free) {
    ranges.push_back(one.range);
  }
  const auto set = [&](std::span<const double> values) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      free[i].parameter->value = values[i];
    }
  };
  const auto residuals = [&](std::span<const double> values) {
    set(values);
    std::vector<double> out;
    for (const NcclRow& row : rows) {
      out.push_back(std::log(predicted_seconds(cluster, row) / row.seconds));
    }
    return out;
  };
  const CurveFit best =
      fit_curve(residuals, ranges, {.huber = kHuber, .more_starts = 31, .spread = 1.5});
  for (std::size_t i = 0; i < free.size(); ++i) {
    *free[i].parameter = {rounded(best.parameters[i]), Evidence::Fitted, std::string(source)};
  }
}

std::vector<NcclRow> only(std::span<const NcclRow> rows, NcclOrigin origin,
                          double least_bytes = 0.0) {
  std::vector<NcclRow> out;
  std::ranges::copy_if(rows, std::back_inserter(out), [&](const NcclRow& row) {
    return row.origin == origin && is_fitted(row) && row.bytes >= least_bytes;
  });
  if (out.empty()) {
    fail_input("nccl", "the table has none of the rows that the network is fitted to");
  }
  return out;
}

/// Takes a fitted number where the source names its fit.
void carry_over(Parameter& to, const Parameter& fitted) {
  if (to.source == fitted.source + std::string(kCarriedOver) + "H100") {
    to.value = fitted.value;
  }
}

/// All that fit_h100_network() changes.
void carry_over(HardwareProfile& to, const HardwareProfile& h100) {
  carry_over(to.tree_ll.nic_hop_us, h100.tree_ll.nic_hop_us);
  carry_over(to.tree_ll.nic_fraction, h100.tree_ll.nic_fraction);
  carry_over(to.tree_simple.base_us, h100.tree_simple.base_us);
  carry_over(to.tree_simple.nic_fraction, h100.tree_simple.nic_fraction);
  if (to.nvls && to.nvls_tree) {
    carry_over(to.nvls->base_us, h100.nvls->base_us);
    carry_over(to.nvls->nvlink_fraction, h100.nvls->nvlink_fraction);
    carry_over(to.nvls->ramp_us, h100.nvls->ramp_us);
    carry_over(to.nvls->ramp_mbytes, h100.nvls->ramp_mbytes);
    carry_over(to.nvls_tree->base_us, h100.nvls_tree->base_us);
    carry_over(to.nvls_tree->two_nodes_nic_fraction, h100.nvls_tree->two_nodes_nic_fraction);
  }
}

bool suits(const NcclRow& row, const CollectiveOption& option) {
  return row.algorithm.empty() || name_of(option.algorithm) == row.algorithm;
}

}  // namespace

bool is_fitted(const NcclRow& row) {
  return row.origin == NcclOrigin::AzureH100 || row.origin == NcclOrigin::AwsH100 ||
         row.origin == NcclOrigin::SendReceiveB200 ||
         (row.origin == NcclOrigin::EchoA100 && row.group.members <= kMaxFittedA100);
}

bool is_modelled(const Cluster& cluster, const NcclRow& row) {
  if (!row.kind) {
    return true;
  }
  const auto options = collective_options(cluster, *row.kind, row.bytes, row.group);
  return std::ranges::any_of(options, [&](const auto& option) { return suits(row, option); });
}

double predicted_seconds(const Cluster& cluster, const NcclRow& row) {
  if (!row.kind) {
    const LinkTime time = p2p_time(
        cluster, row.bytes, {.same_node = row.group.nodes == 1, .communicator = row.group.members});
    return time.occupied + time.latency;
  }
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveOption& option :
       collective_options(cluster, *row.kind, row.bytes, row.group)) {
    if (suits(row, option)) {
      least = std::min(least, option.seconds);
    }
  }
  return least;
}

HardwareProfile fit_a100_network(const Cluster& cluster, std::span<const NcclRow> rows) {
  Cluster fitted = cluster;
  HardwareProfile& p = fitted.gpu.profile;
  const std::vector<Free> free = {
      {&p.ring_ll.base_us, micros(6.6)},
      {&p.ring_ll.nvlink_hop_us, micros(1.0)},
      {&p.ring_ll.nvlink_fraction, fraction(0.1)},
      {&p.ring_ll128.base_us, micros(30.0)},
      {&p.ring_ll128.nvlink_hop_us, micros(1.9)},
      {&p.ring_ll128.nvlink_fraction, fraction(0.5, kLl128Payload)},
      {&p.ring_simple.base_us, micros(30.0)},
      {&p.ring_simple.nvlink_hop_us, micros(3.4)},
      {&p.ring_simple.nvlink_fraction, fraction(0.8)},
      {&p.ring_simple.nic_fraction, fraction(0.7)},
      {&p.tree_ll.nic_hop_us, micros(5.0)},
      {&p.tree_ll.nic_fraction, fraction(0.05)},
      {&p.tree_simple.nic_fraction, fraction(0.6)},
  };
  fit(fitted, free, only(rows, NcclOrigin::EchoA100), kA100Source);
  return p;
}

HardwareProfile fit_h100_network(const Cluster& cluster, std::span<const NcclRow> rows) {
  Cluster fitted = cluster;
  HardwareProfile& p = fitted.gpu.profile;
  if (!p.nvls || !p.nvls_tree) {
    fail_input(fitted.gpu.name, "has no NVLS to fit");
  }
  const std::vector<Free> in_node = {
      {&p.nvls->base_us, micros(25.0)},
      {&p.nvls->nvlink_fraction, fraction(0.7)},
      {&p.nvls->ramp_us, micros(50.0)},
      {&p.nvls->ramp_mbytes, {.start = 30.0, .upper = 1e6}},
  };
  fit(fitted, in_node, only(rows, NcclOrigin::AzureH100, kNvlsLeast), kNvlsSource);
  const std::vector<Free> between_nodes = {
      {&p.tree_ll.nic_hop_us, micros(20.0)},  {&p.tree_ll.nic_fraction, fraction(0.03)},
      {&p.tree_simple.base_us, micros(40.0)}, {&p.tree_simple.nic_fraction, fraction(0.4)},
      {&p.nvls_tree->base_us, micros(200.0)}, {&p.nvls_tree->two_nodes_nic_fraction, fraction(0.6)},
  };
  fit(fitted, between_nodes, only(rows, NcclOrigin::AwsH100), kAwsSource);
  return p;
}

Gpu with_fitted_network(const Gpu& gpu, std::span<const NcclRow> rows) {
  Gpu out = gpu;
  if (gpu.name == "a100-80gb") {
    Cluster cluster = load_cluster("a100-64");
    cluster.gpu = gpu;
    out.profile = fit_a100_network(cluster, rows);
    return out;
  }
  Cluster h100 = load_cluster("h100-64");
  if (gpu.name == h100.gpu.name) {
    h100.gpu = gpu;
    out.profile = fit_h100_network(h100, rows);
  } else {
    carry_over(out.profile, fit_h100_network(h100, rows));
  }
  return out;
}

}  // namespace dipsim
