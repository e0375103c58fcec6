// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/pictures.hpp"
#include "sim/graph/results.hpp"

#include <string>

namespace dipsim {

/// Text of report.html: one file that needs neither network nor script, readable on a phone and in
/// dark mode. `pictures` are those of the same comparison.
std::string report_html(const Comparison& comparison, const Pictures& pictures);

}  // namespace dipsim
