// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// Text of summary.md: the findings, the table, the inputs to run it again, and the meaning of
/// every metric and of every column of iterations.csv.
std::string summary_markdown(const Comparison& comparison);

}  // namespace dipsim
