// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/results.hpp"

#include <string>
#include <vector>

namespace dipsim {

/// Every picture of a comparison, as SVG.
struct Pictures {
  std::string comparison;
  std::string idle;
  std::vector<std::string> timeline;  ///< per schedule; "" where its sample holds no timeline
  std::vector<std::string> memory;    ///< likewise
};

Pictures draw_pictures(const Comparison& comparison);

}  // namespace dipsim
