// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/definitions.hpp"
#include "sim/graph/results.hpp"

#include <span>
#include <string>

namespace dipsim {

/// The columns of iterations.csv and their meaning. One more column per LoadSeries follows, under
/// the name of the series.
std::span<const Definition> iteration_columns();

/// Text of iterations.csv: a header line, then a row per iteration and schedule. Times in ms,
/// numbers read back exactly; unknown values are empty.
std::string iterations_csv(const Comparison& comparison);

}  // namespace dipsim
