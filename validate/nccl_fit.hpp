// SPDX-License-Identifier: Apache-2.0
// The network curves of the shipped GPUs, fitted to published NCCL measurements.
#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/profile.hpp"
#include "validate/nccl_rows.hpp"

#include <span>

namespace dipsim {

/// The profile of `cluster` with those network parameters replaced that the measurements decide,
/// rounded to three digits and marked as fitted; the others stay. Starts from fixed values, not
/// from the profile: fitting twice changes nothing.
///
/// A100: rings and trees, from EchoA100 rows of up to 64 GPUs.
HardwareProfile fit_a100_network(const Cluster& cluster, std::span<const NcclRow> rows);

/// H100: NVLS from AzureH100, trees and NVLS trees from AwsH100.
HardwareProfile fit_h100_network(const Cluster& cluster, std::span<const NcclRow> rows);

/// A shipped GPU with its network curves fitted anew (A100, H100), or, where the source of a
/// parameter says that it is carried over from H100, with that of the fitted H100.
Gpu with_fitted_network(const Gpu& gpu, std::span<const NcclRow> rows);

/// Whether a network curve was fitted to this row or read off it.
bool is_fitted(const NcclRow& row);

/// Whether the model runs the algorithm that the row was forced to.
bool is_modelled(const Cluster& cluster, const NcclRow& row);

/// The time that the cluster's model gives for a row, by the algorithm that the row was forced to;
/// only where is_modelled().
double predicted_seconds(const Cluster& cluster, const NcclRow& row);

}  // namespace dipsim
