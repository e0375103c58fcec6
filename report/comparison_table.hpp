// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/table.hpp"
#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// One row per schedule: iteration time, ratio to the first, bubble, MFU, memory of the fullest
/// rank, recomputation, distance to the bound, whether it fits. The winner is marked with '*'.
Table comparison_table(const Comparison& comparison);

/// What `compare` prints. Table: the table and the findings; Json: result_json(); Csv: the table;
/// Markdown: summary_markdown().
std::string render_comparison(const Comparison& comparison, Format format);

}  // namespace dipsim
