// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/results.hpp"

#include <string>
#include <vector>

namespace dipsim {

/// What a comparison says, in sentences: the same on the terminal, in summary.md and report.html.
struct Findings {
  std::string headline;               ///< who wins and by how much, or that nothing fits
  std::vector<std::string> reasons;   ///< where time goes, where second and first lose, what fits,
                                      ///< how the data were treated
  std::vector<std::string> others;    ///< where every other schedule loses
  std::string potential;              ///< how much can still be gained; "" when unknown
  std::vector<std::string> warnings;  ///< those of the comparison, and that it was interrupted
};

Findings findings(const Comparison& comparison);

/// Reasons, others and potential, one after the other.
std::vector<std::string> all_sentences(const Findings& findings);

}  // namespace dipsim
