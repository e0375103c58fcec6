// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace dipsim {

/// A metric, or a column of a file, and its meaning in one line.
struct Definition {
  std::string_view name;
  std::string_view meaning;
};

/// Every metric that summary.md and report.html print.
std::span<const Definition> metric_definitions();

}  // namespace dipsim
