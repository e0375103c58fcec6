// SPDX-License-Identifier: Apache-2.0
// The heuristic search of Zero Bubble over orders of F, I and W.
#pragma once

#include "schedulers/static/order_builder.hpp"
#include "schedulers/static/pipeline_instance.hpp"

#include <vector>

namespace dipsim {

/// The three switches of the search (Zero Bubble, ICLR'24, arXiv 2401.10241 §3.1; the names are
/// ours).
struct ZeroBubbleSwitches {
  /// Forwards of the warm-up end before the first gradient comes, and leave a gap; else the last
  /// one may delay it.
  bool gap_before_first_backward = false;
  /// A forward waits where it would delay the next backward.
  bool backward_first = false;
  /// W's fill gaps that a rank can afford, too.
  bool fill_small_gaps = false;
};

/// Builds one candidate into an empty builder. One chunk per rank.
void build_zero_bubble(OrderBuilder& order, const ZeroBubbleSwitches& switches);

/// All eight candidates and the orders of arrival_order.hpp under these limits, one per rank; the
/// shortest, the first among equals. Throws Infeasible as OrderBuilder does.
std::vector<std::vector<Step>> search_zero_bubble(const PipelineInstance& instance,
                                                  const std::vector<Bytes>& limits);

}  // namespace dipsim
