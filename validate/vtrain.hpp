// SPDX-License-Identifier: Apache-2.0
// What the host needs to issue work, fitted to a tenth of vTrain's single-node measurements: the
// only step times that any parameter is fitted to.
#pragma once

#include "sim/cluster/profile.hpp"
#include "validate/csv_table.hpp"

#include <cstddef>

namespace dipsim {

/// Whether row `row` (from 0) of vtrain_single.csv belongs to the fit: every tenth.
constexpr bool is_calibration_row(std::size_t row) { return row % 10 == 0; }

/// Times per kernel and per pass on the host, least squares of log(predicted / measured) over the
/// calibration rows.
IssueRate fit_host_issue(const CsvTable& vtrain_single);

}  // namespace dipsim
